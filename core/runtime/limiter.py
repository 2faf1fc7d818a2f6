"""One pace for everything that goes to a chat and to a bot; it keeps time, it sends nothing."""

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from core.domain.keys import Address
from core.ports import UNWATCHED, Clock, Pace, Paces, Telemetry

REMEMBERED_CHATS = 10_000
ROUNDING = 0.001
"""Seconds by which a time may lie beyond what its calls add up to."""
DEFAULT_PACES = Paces()

Place = TypeVar("Place")


class Block(msgspec.Struct, frozen=True):
    since: datetime
    until: datetime


class Limiter:
    """The generic cell rate algorithm, a chat and a bot at a time.

    A place is kept as the time at which its next call would be exactly on pace; a 429 moves it.
    A time that no call can have made is one of before the clock was set back, and holds up nobody.
    ``paces`` has those of the platforms that differ from the default.
    """

    def __init__(
        self,
        clock: Clock,
        paces: Mapping[str, Paces] | None = None,
        telemetry: Telemetry = UNWATCHED,
    ) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._paces = dict(paces or {})
        self._due: OrderedDict[str, datetime] = OrderedDict()
        self._blocked: OrderedDict[str, Block] = OrderedDict()

    async def acquire(self, address: Address) -> None:
        """Waits for the next place; for what must be sent."""
        while True:
            wait = self._wait(address, 0)
            if wait <= 0:
                return self._take(address)
            await self._clock.sleep(wait)

    def try_acquire(self, address: Address) -> bool:
        """For what may be left out: False when the chat or the bot is short."""
        if self._wait(address, self._of(address).cosmetic_reserve) > 0:
            return False
        self._take(address)
        return True

    def block(self, address: Address, seconds: float) -> None:
        """The platform said how long this chat must be left alone."""
        self._telemetry.count("rate_limit", address.platform)
        now = self._clock.now()
        longest = max(seconds, self.blocked_for(address))
        _put(self._blocked, address.lane, Block(now, now + timedelta(seconds=longest)))

    def blocked_for(self, address: Address) -> float:
        """Seconds for which the platform wants this chat left alone."""
        now = self._clock.now()
        block = self._blocked.get(address.lane)
        if block is None or block.since > now:
            return 0.0
        return max(0.0, (block.until - now).total_seconds())

    def _wait(self, address: Address, reserve: int) -> float:
        waits = [self.blocked_for(address)]
        for name, pace, kept in self._places(address, reserve):
            grace = pace.interval * max(0, pace.burst - 1 - kept)
            waits.append(self._ahead(name, pace) - grace)
        return max(waits)

    def _take(self, address: Address) -> None:
        now = self._clock.now()
        for name, pace, _ in self._places(address, 0):
            ahead = max(0.0, self._ahead(name, pace)) + pace.interval
            _put(self._due, name, now + timedelta(seconds=ahead))

    def _ahead(self, name: str, pace: Pace) -> float:
        """Seconds until the place is exactly on pace."""
        now = self._clock.now()
        ahead = (self._due.get(name, now) - now).total_seconds()
        return ahead if ahead <= pace.interval * pace.burst + ROUNDING else 0.0

    def _places(self, address: Address, reserve: int) -> tuple[tuple[str, Pace, int], ...]:
        bot = f"{address.platform}:{address.account}"
        paces = self._of(address)
        chat = paces.chat if address.chat_type == "dm" else paces.group
        return ((address.lane, chat, reserve), (bot, paces.bot, reserve))

    def _of(self, address: Address) -> Paces:
        return self._paces.get(address.platform, DEFAULT_PACES)


def _put(places: OrderedDict[str, Place], name: str, value: Place) -> None:
    places[name] = value
    places.move_to_end(name)
    while len(places) > REMEMBERED_CHATS:
        places.popitem(last=False)
