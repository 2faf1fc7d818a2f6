"""One pace for everything that goes to a chat and to a bot; it keeps time, it sends nothing."""

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime, timedelta

from core.domain.keys import Address
from core.ports import Clock, Pace, Paces

REMEMBERED_CHATS = 10_000
DEFAULT_PACES = Paces()


class Limiter:
    """The generic cell rate algorithm, a chat and a bot at a time.

    A place is kept as the time at which its next call would be exactly on pace; a 429 moves it.
    ``paces`` has those of the platforms that differ from the default.
    """

    def __init__(self, clock: Clock, paces: Mapping[str, Paces] | None = None) -> None:
        self._clock = clock
        self._paces = dict(paces or {})
        self._due: OrderedDict[str, datetime] = OrderedDict()
        self._blocked: OrderedDict[str, datetime] = OrderedDict()

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
        until = self._clock.now() + timedelta(seconds=seconds)
        _put(self._blocked, address.lane, max(until, self._blocked.get(address.lane, until)))

    def blocked_for(self, address: Address) -> float:
        """Seconds for which the platform wants this chat left alone."""
        now = self._clock.now()
        return max(0.0, (self._blocked.get(address.lane, now) - now).total_seconds())

    def _wait(self, address: Address, reserve: int) -> float:
        now = self._clock.now()
        blocked = self._blocked.get(address.lane, now)
        waits = [(blocked - now).total_seconds()]
        for name, pace, kept in self._places(address, reserve):
            grace = pace.interval * max(0, pace.burst - 1 - kept)
            waits.append((self._due.get(name, now) - now).total_seconds() - grace)
        return max(waits)

    def _take(self, address: Address) -> None:
        now = self._clock.now()
        for name, pace, _ in self._places(address, 0):
            due = max(now, self._due.get(name, now)) + timedelta(seconds=pace.interval)
            _put(self._due, name, due)

    def _places(self, address: Address, reserve: int) -> tuple[tuple[str, Pace, int], ...]:
        bot = f"{address.platform}:{address.account}"
        paces = self._of(address)
        chat = paces.chat if address.chat_type == "dm" else paces.group
        return ((address.lane, chat, reserve), (bot, paces.bot, reserve))

    def _of(self, address: Address) -> Paces:
        return self._paces.get(address.platform, DEFAULT_PACES)


def _put(places: OrderedDict[str, datetime], name: str, value: datetime) -> None:
    places[name] = value
    places.move_to_end(name)
    while len(places) > REMEMBERED_CHATS:
        places.popitem(last=False)
