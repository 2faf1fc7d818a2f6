"""Has messages stored in the order of their channel, live or read from the history.

Discord brings nothing twice: what is not on disk when the process dies is read from the channel's
history at the next start, from the bookmark on. So a bookmark moves only past what is on disk, and
while a channel is being read what comes live waits behind.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import discord
import structlog

from bots.platforms import Bookmarks
from bots.platforms.discord.client import Client
from bots.platforms.discord.faults import fault_of
from bots.platforms.discord.translate import inbound
from bots.platforms.patience import Patience
from bots.platforms.signs import Signs
from bots.platforms.taker import Taker
from core.domain.keys import ChatType
from core.domain.messages import Inbound
from core.errors import StorageError
from core.ports import Clock

WINDOW = timedelta(hours=24)
"""What is older was missed for good: its answer would surprise more than help."""
PAGE = 100
_BROKEN = (AttributeError, LookupError, TypeError, ValueError)
"""What the SDK raises for a message that it cannot read."""

log = structlog.get_logger(__name__)


class Intake:
    """``get_client`` gives what reads the history; ``is_connected`` is told by the gateway."""

    def __init__(  # noqa: PLR0913 - all that it stands between
        self,
        taker: Taker,
        patience: Patience,
        bookmarks: Bookmarks,
        signs: Signs,
        clock: Clock,
        get_client: Callable[[], Awaitable[Client]],
    ) -> None:
        self._taker = taker
        self._patience = patience
        self.is_connected = False
        self._bookmarks = bookmarks
        self._signs = signs
        self._clock = clock
        self._get_client = get_client
        self._me = 0
        self._places: dict[str, int] = {}
        self._held: dict[str, deque[discord.Message]] = {}
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
        for name in self._places:
            self._held.setdefault(name, deque())

    def offer(self, message: discord.Message) -> None:
        """In the order in which they came."""
        self._held.get(_name(message), self._live).append(message)
        self._news.set()

    async def work(self) -> None:
        """Takes what comes live, until it is cancelled. Raises TokenRefusedError."""
        while True:
            while self._live:
                await self._take(self._live[0], _name(self._live[0]))
                self._live.popleft()
            self._news.clear()
            await self._news.wait()

    async def catch_up(self) -> None:
        """Reads what was said in the known channels since their bookmarks, the liveliest first.
        Raises TokenRefusedError."""
        for name in sorted(self._held, key=self._places.__getitem__, reverse=True):
            await self._read_on(name)
            held = self._held[name]
            while held:
                await self._take(held[0], name)
                held.popleft()
            del self._held[name]

    async def _read_on(self, name: str) -> None:
        after = max(self._places[name], await self._patience.insist(self._oldest))
        while page := await self._patience.insist(partial(self._page, name, after)):
            for message in page:
                await self._take(message, name)
            after = page[-1].id
            await self._mark(name, after)

    async def _oldest(self) -> int:
        """The beginning of the window, by Discord's clock."""
        now = (await self._get_client()).now or self._clock.now()
        return discord.utils.time_snowflake(now - WINDOW)

    async def _page(self, name: str, after: int) -> list[discord.Message]:
        """Empty for a channel that is gone, or closed to us."""
        client = await self._get_client()
        channel = client.get_partial_messageable(int(name.partition(" ")[2]))
        history = channel.history(after=discord.Object(after), limit=PAGE, oldest_first=True)
        try:
            return [message async for message in history]
        except _BROKEN:
            log.exception("history left out, which is a bug of this adapter", channel=name)
        except discord.HTTPException as error:
            if fault_of(error) != "rejected":
                raise
            log.info("history cannot be read", channel=name, error=str(error))
        return []

    async def _take(self, message: discord.Message, name: str) -> None:
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


def _chat_type(name: str) -> ChatType:
    return "dm" if name.startswith("dm ") else "channel"
