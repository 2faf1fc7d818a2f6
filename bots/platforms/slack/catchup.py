"""Reads what was said while we were away; it goes through the same door as what comes live.

Slack brings an event again for some minutes, and then no more. So each place that is known is read
on from its mark: ten minutes before it, as messages may overtake each other on their way, and not
more than a week back. What was taken before is known by its id.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from bots.platforms.patience import LONGEST_SECONDS
from bots.platforms.slack.client import Answer, Client, next_cursor
from bots.platforms.slack.faults import Fault, described, fault_of, seconds_of
from bots.platforms.slack.intake import Intake
from bots.platforms.slack.places import Places
from core.errors import StorageError
from core.ports import Clock

WINDOW = timedelta(days=7)
OVERLAP = timedelta(minutes=10)
PAGE = 200
PAUSE_SECONDS = 5.0
MOST_WAITS = 5
"""How often Slack may put off a page, before the other places have their turn."""
WRITE_SECONDS = 10.0
"""How often marks are written down."""

log = structlog.get_logger(__name__)


class CatchUp:
    def __init__(
        self,
        client: Client,
        intake: Intake,
        places: Places,
        clock: Clock,
        redact: Callable[[str], str],
    ) -> None:
        self._client = client
        self._intake = intake
        self._places = places
        self._clock = clock
        self._redact = redact
        self._resting: set[str] = set()
        self._failures = Counter[str]()

    def gap(self) -> None:
        """Events may have been missed."""
        self._places.fall_behind()
        self._intake.missed.set()

    async def run(self) -> None:
        """Until it is cancelled; it may be run again then."""
        self._resting.clear()
        async with asyncio.TaskGroup() as rests:
            while True:
                await self._intake.missed.wait()
                self._intake.missed.clear()
                for place in self._places.behind:
                    if place not in self._resting:
                        await self._try(place, rests)

    async def keep_marks(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._clock.sleep(WRITE_SECONDS)
            try:
                await self._places.write()
            except StorageError as error:
                log.warning("marks not written", error=str(error))

    def _is_over(self, place: str) -> bool:
        """A thread in which nothing was said for a while; there are too many of them to ask."""
        return ":" in place and _moment(self._places.mark(place).at) < self._now() - WINDOW

    async def _try(self, place: str, rests: asyncio.TaskGroup) -> None:
        fall = self._places.fall(place)
        if self._is_over(place):
            self._places.caught_up(place, self._places.mark(place).at, fall)
            return
        try:
            newest = await self._read(place)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others wait behind it
            log.warning("history not read", place=place, error=described(error, self._redact))
            await self._put_off(place, fall, fault_of(error), rests)
        else:
            self._failures.pop(place, None)
            self._places.caught_up(place, newest, fall)

    async def _put_off(self, place: str, fall: int, fault: Fault, rests: asyncio.TaskGroup) -> None:
        """It stays behind, and the others go on. A place that Slack keeps from us is left alone; a
        token that it refuses is not tried again until events may have been missed again."""
        self._places.put_off(place)
        match fault:
            case "rejected":
                self._places.caught_up(place, self._places.mark(place).at, fall)
            case "refused":
                return
            case "unsent":
                await self._clock.sleep(PAUSE_SECONDS)
                self._intake.missed.set()
            case _:
                self._resting.add(place)
                rests.create_task(self._rest(place))

    async def _rest(self, place: str) -> None:
        self._failures[place] += 1
        doubled = min(self._failures[place] - 1, 10)
        await self._clock.sleep(min(LONGEST_SECONDS, PAUSE_SECONDS * 2.0**doubled))
        self._resting.discard(place)
        self._intake.missed.set()

    async def _read(self, place: str) -> str:
        """Oldest first. Returns up to where it is on disk now. Raises StorageError."""
        channel, _, thread = place.partition(":")
        since = self._since(place)
        found = [message async for message in self._messages(channel, thread, since)]
        newest = self._places.mark(place).at
        for message in sorted(found, key=lambda message: str(message["ts"])):
            ts = str(message["ts"])
            if ts > since:
                await self._intake.take_past(message, channel)
                newest = max(newest, ts)
        for root in [] if thread else found:
            await self._learn_thread(channel, root, since)
        return newest

    async def _learn_thread(self, channel: str, root: Answer, since: str) -> None:
        """One that was begun in a private conversation meanwhile."""
        thread = f"{channel}:{root['ts']}"
        if not channel.startswith("D") or str(root.get("latest_reply") or "") <= since:
            return
        if not self._places.knows(thread):
            await self._places.learn(thread, str(root["ts"]))
            self._places.fall_behind([thread])
            self._intake.missed.set()

    def _since(self, place: str) -> str:
        """As a timestamp of Slack's, of which one is as long as the other."""
        mark = self._places.mark(place)
        oldest = max(_moment(mark.at) - OVERLAP, self._now() - WINDOW)
        return max(mark.first, f"{oldest.timestamp():.6f}")

    def _now(self) -> datetime:
        return self._client.time or self._clock.now()

    async def _messages(self, channel: str, thread: str, since: str) -> AsyncIterator[Answer]:
        asked: dict[str, Any] = {"channel": channel, "oldest": since, "limit": PAGE}
        method = "conversations.history"
        if thread:
            method, asked = "conversations.replies", asked | {"ts": thread}
        while True:
            answer = await self._page(method, asked)
            for message in answer.get("messages") or ():
                yield message
            asked["cursor"] = next_cursor(answer)
            if not asked["cursor"]:
                return

    async def _page(self, method: str, asked: dict[str, Any]) -> Answer:
        """Slack wants a method to be left alone, not a place: what was read of it is kept."""
        waits = 0
        while True:
            try:
                return await self._client.read(method, **asked)
            except Exception as error:
                if fault_of(error) != "slow down":
                    raise
                await self._clock.sleep(seconds_of(error) or PAUSE_SECONDS)
                waits += 1
                if waits == MOST_WAITS:
                    raise


def _moment(ts: str) -> datetime:
    return datetime.fromtimestamp(float(ts), UTC)
