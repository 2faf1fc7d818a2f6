"""Reads what was said while we were away; it goes through the same door as what comes live.

Slack brings an event again for some minutes, and then no more. So each place that is known is read
on from its mark: ten minutes before it, as messages may overtake each other on their way, and not
more than a week back. What was taken before is known by its id.
"""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from bots.platforms.slack.client import Answer, Client, next_cursor
from bots.platforms.slack.faults import described, fault_of, seconds_of
from bots.platforms.slack.intake import Intake
from bots.platforms.slack.places import Places
from core.errors import StorageError
from core.ports import Clock

WINDOW = timedelta(days=7)
OVERLAP = timedelta(minutes=10)
PAGE = 200
PAUSE_SECONDS = 5.0
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

    def gap(self) -> None:
        """Events may have been missed."""
        self._places.fall_behind()
        self._intake.missed.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._intake.missed.wait()
            self._intake.missed.clear()
            for place in self._places.behind:
                if self._is_over(place):
                    self._places.caught_up(place, self._places.mark(place).at)
                else:
                    await self._insist(place)

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

    async def _insist(self, place: str) -> None:
        """A place that Slack keeps from us is left alone; anything else is tried on."""
        while True:
            try:
                newest = await self._read(place)
            except Exception as error:  # noqa: BLE001 - whatever it is, the others wait behind it
                fault = fault_of(error)
                log.warning("history not read", place=place, error=described(error, self._redact))
                if fault in ("rejected", "refused"):
                    self._places.caught_up(place, self._places.mark(place).at)
                    return
                await self._clock.sleep(seconds_of(error) or PAUSE_SECONDS)
            else:
                self._places.caught_up(place, newest)
                return

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
            await self._insist(thread)

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
            answer = await self._client.read(method, **asked)
            for message in answer.get("messages") or ():
                yield message
            asked["cursor"] = next_cursor(answer)
            if not asked["cursor"]:
                return


def _moment(ts: str) -> datetime:
    return datetime.fromtimestamp(float(ts), UTC)
