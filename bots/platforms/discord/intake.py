"""Has messages stored in the order of their channel, live or read from the history.

Discord brings nothing twice: what is not on disk when the process dies is read from the channel's
history at the next start, from the bookmark on. So a bookmark moves only past what is on disk, and
while a channel is being read what comes live waits behind. A channel whose history cannot be read
holds up no other, and itself not for ever: then what comes live is taken before what was missed,
and its bookmark stays.
"""

import asyncio
import secrets
from collections import deque
from functools import partial

import discord
import msgspec
import structlog

from bots.platforms import Bookmarks
from bots.platforms.discord.history import History, UnreadError
from bots.platforms.discord.together import until_one_fails
from bots.platforms.discord.translate import inbound
from bots.platforms.discord.turns import Rank, Turns
from bots.platforms.patience import Patience, jittered
from bots.platforms.signs import Signs
from bots.platforms.taker import Taker
from core.domain.keys import ChatType
from core.domain.messages import Inbound
from core.errors import StorageError
from core.ports import Clock

AT_ONCE = 4
"""So many channels are read at the same time; Discord allows fifty calls a second in all."""
LONGEST_PAUSE = 300.0
HOLDING_TRIES = 5
"""As often a history may fail, which takes some ten seconds, before it is not waited for."""

log = structlog.get_logger(__name__)


class Behind(msgspec.Struct):
    """A channel whose history is still to be read. ``held`` is what came live meanwhile."""

    held: deque[discord.Message] = msgspec.field(default_factory=deque[discord.Message])
    failures: int = 0

    @property
    def is_waited_for(self) -> bool:
        return self.failures < HOLDING_TRIES


class Intake:
    """``is_connected`` is told by the gateway."""

    def __init__(  # noqa: PLR0913 - all that it stands between
        self,
        taker: Taker,
        patience: Patience,
        bookmarks: Bookmarks,
        signs: Signs,
        clock: Clock,
        history: History,
    ) -> None:
        self._taker = taker
        self._patience = patience
        self.is_connected = False
        self._bookmarks = bookmarks
        self._signs = signs
        self._clock = clock
        self._history = history
        self._turns = Turns(clock, self._rank)
        self._me = 0
        self._places: dict[str, int] = {}
        self._behind: dict[str, Behind] = {}
        self._live = deque[discord.Message]()
        self._news = asyncio.Event()
        self._storing = 0

    @property
    def stuck(self) -> bool:
        """Something could not be stored, and is being tried again."""
        return self._storing > 0

    async def open(self, me: int) -> None:
        """From here on every known channel is behind, until ``catch_up`` has read it. Raises
        StorageError."""
        self._me = me
        for name, place in (await self._bookmarks.read()).items():
            self._places[name] = max(int(place), self._places.get(name, 0))
        self._turns = Turns(self._clock, self._rank)
        for name in self._places:
            self._behind.setdefault(name, Behind())
            self._turns.put(name)

    def offer(self, message: discord.Message) -> None:
        """In the order in which they came."""
        name = _name(message)
        behind = self._behind.get(name)
        if behind is None or not behind.is_waited_for:
            self._live.append(message)
            self._news.set()
            return
        behind.held.append(message)
        self._turns.hurry(name)

    async def work(self) -> None:
        """Takes what comes live, until it is cancelled. Raises TokenRefusedError."""
        while True:
            while self._live:
                await self._take(self._live[0], _name(self._live[0]), is_live=True)
                self._live.popleft()
            self._news.clear()
            await self._news.wait()

    async def catch_up(self) -> None:
        """Reads what was said in the known channels since their bookmarks, until it is cancelled.
        Raises TokenRefusedError, or what the SDK does when the token is refused."""
        try:
            await until_one_fails(*(self._read_channels() for _ in range(AT_ONCE)))
        finally:
            await self._turns.close()

    async def _read_channels(self) -> None:
        while True:
            name = await self._turns.take()
            try:
                await self._read_on(name)
            except UnreadError as error:
                self._put_off(name, error)

    async def _read_on(self, name: str) -> None:
        while (page := await self._history.page(_chat(name), self._places[name])).last:
            for message in page.messages:
                await self._take(message, name)
            await self._mark(name, page.last)
        held = self._behind[name].held
        while held:
            await self._take(held[0], name)
            held.popleft()
        del self._behind[name]

    def _put_off(self, name: str, error: UnreadError) -> None:
        behind = self._behind[name]
        pause = jittered(min(LONGEST_PAUSE, 2.0 ** min(behind.failures, 10)))
        behind.failures += 1
        if not behind.is_waited_for:
            self._live.extend(behind.held)
            behind.held.clear()
            self._news.set()
        log.warning(
            "history is read later", channel=name, failures=behind.failures, error=str(error)
        )
        seconds = pause if error.seconds is None else error.seconds
        self._turns.put_later(name, seconds)

    def _rank(self, name: str) -> Rank:
        """Where somebody waits first, then the liveliest; what failed makes room for the others."""
        behind = self._behind[name]
        return (0 if behind.held else 1, behind.failures, -self._places[name])

    async def _take(self, message: discord.Message, name: str, *, is_live: bool = False) -> None:
        taken = self._read(message, name)
        if taken is None:
            return
        if name not in self._places:
            await self._mark(name, message.id - 1)
        self._storing += 1
        try:
            await self._patience.insist(partial(self._taker.take, taken))
        finally:
            self._storing -= 1
        if self.is_connected and not self._signs.is_receiving:
            self._signs.receiving()
        if not (is_live and name in self._behind):
            await self._mark(name, message.id)

    def _read(self, message: discord.Message, name: str) -> Inbound | None:
        """One that cannot be read must not stop those behind it."""
        try:
            return inbound(message, self._me, _chat_type(name))
        except Exception:
            log.exception(
                "message left out: it cannot be read, which is a bug of this adapter",
                message=message.id,
                error_id=secrets.token_hex(4),
            )
            return None

    async def _mark(self, name: str, place: int) -> None:
        """A bookmark that lags behind costs a second look at what is known."""
        if place <= self._places.get(name, 0):
            return
        self._places[name] = place
        try:
            await self._bookmarks.put(name, str(place))
        except StorageError as error:
            log.warning("bookmark not moved", channel=name, error=str(error))


def _name(message: discord.Message) -> str:
    """The history does not say what kind of channel it is of, so the bookmark does."""
    kind: ChatType = "dm" if isinstance(message.channel, discord.DMChannel) else "channel"
    return f"{kind} {message.channel.id}"


def _chat(name: str) -> int:
    return int(name.partition(" ")[2])


def _chat_type(name: str) -> ChatType:
    return "dm" if name.startswith("dm ") else "channel"
