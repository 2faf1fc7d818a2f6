"""Knows which conversations there are and up to where each is on disk; it reads no history.

A place is a channel's id, or a channel's and a thread's with a colon between them. Its mark may lag
behind and never runs ahead: while a place is behind, what comes live does not move its mark. Where
one falls behind again while its history is read, that reading does not count.
"""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from bots.platforms import Bookmarks


class Mark(NamedTuple):
    """All is on disk up to ``at``; before ``first`` nothing was said to us."""

    at: str
    first: str


class Places:
    def __init__(self, bookmarks: Bookmarks) -> None:
        self._bookmarks = bookmarks
        self._marks: dict[str, Mark] = {}
        self._moved: dict[str, str] = {}
        self._behind: dict[str, int] = {}
        self._reads: dict[str, asyncio.Event] = {}
        """Of places that are behind: set when nobody should wait for the reading any more."""
        self._falls = 0
        self._is_loaded = False

    async def load(self) -> None:
        """Once; all that is known then is behind. Raises StorageError."""
        if not self._is_loaded:
            stored = await self._bookmarks.read()
            self._marks = {place: _mark(text) for place, text in stored.items()}
            self._is_loaded = True
            self.fall_behind()

    def knows(self, place: str) -> bool:
        return place in self._marks

    def mark(self, place: str) -> Mark:
        return self._marks[place]

    @property
    def behind(self) -> tuple[str, ...]:
        """Those whose messages are the newest come first."""
        return tuple(sorted(self._behind, key=lambda place: self._marks[place], reverse=True))

    def is_behind(self, place: str) -> bool:
        return place in self._behind

    def fall_behind(self, places: Iterable[str] | None = None) -> None:
        """They have to be read again; all of them where none is named."""
        self._falls += 1
        fallen = dict.fromkeys(self._marks if places is None else places, self._falls)
        self._behind |= fallen
        for place in fallen:
            if place not in self._reads or self._reads[place].is_set():
                self._reads[place] = asyncio.Event()

    def fall(self, place: str) -> int:
        """Which one it was, of a place that is behind: for ``caught_up``."""
        return self._behind[place]

    async def read(self, place: str) -> None:
        """Waits until it is not behind any more, or is put off."""
        if reading := self._reads.get(place):
            await reading.wait()

    def put_off(self, place: str) -> None:
        """It stays behind, and what comes live does not wait for it."""
        self._reads[place].set()

    async def learn(self, place: str, ts: str) -> None:
        """Before the first message of a place is stored, so that no kill can lose the place. All
        that fell behind meanwhile fell without it."""
        if place not in self._marks:
            before, falls = _just_before(ts), self._falls
            await self._put(place, Mark(before, before))
            if self._falls != falls:
                self.fall_behind([place])

    def passed(self, place: str, ts: str) -> None:
        """A message that came live is on disk."""
        self._moved[place] = max(ts, self._moved.get(place, ts))

    def caught_up(self, place: str, ts: str, fall: int) -> None:
        """All of its history is on disk, up to there at least, unless it fell again since."""
        if self._behind.get(place) == fall:
            del self._behind[place]
            self._reads.pop(place).set()
        self.passed(place, ts)

    async def write(self) -> None:
        """Marks of all that moved, seldom: a mark may lag. Raises StorageError."""
        for place in tuple(self._moved):
            if place not in self._behind:
                await self._move(place, self._moved.pop(place))

    async def _move(self, place: str, ts: str) -> None:
        mark = self._marks[place]
        if ts > mark.at:
            await self._put(place, mark._replace(at=ts))

    async def _put(self, place: str, mark: Mark) -> None:
        await self._bookmarks.put(place, " ".join(mark))
        self._marks[place] = mark


def _mark(text: str) -> Mark:
    at, _, first = text.partition(" ")
    return Mark(at, first or at)


def _just_before(ts: str) -> str:
    seconds, _, micros = ts.partition(".")
    total = int(seconds) * 1_000_000 + int(micros or 0) - 1
    return f"{total // 1_000_000}.{total % 1_000_000:06d}"
