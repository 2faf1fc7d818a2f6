"""The real service in a chat of its own, on a clock that the test moves; nothing else is faked."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

import msgspec
from starlette.routing import Route

from bots.app import Service
from bots.ground import Ground
from bots.platforms import Adapter, Health, Platform, Site, Variable
from bots.settings import Settings
from core.domain.keys import Address
from core.domain.ledger import Ledger
from core.domain.messages import Attachment, Inbound, OutboxMessage, Part
from core.errors import PermanentError, StorageError
from core.models.scripted import ScriptedModel
from core.ports import Model, Pace, Paces, Store, Tool
from storage.memory import MemoryStore

START = datetime(2026, 5, 5, 14, 30, tzinfo=UTC)
KEY = "agent:main:room:dm:7"
PATIENCE = 10.0
FREE = Pace(0.0, 1000)


class HandClock:
    """``core.ports.Clock``. Its time stands still until it is moved; a sleep is a short one."""

    def __init__(self) -> None:
        self._now = START

    def now(self) -> datetime:
        return self._now

    def passes(self, **span: float) -> None:
        self._now += timedelta(**span)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.005))


class Room:
    """A platform of one process: ``said`` is what its people see, in order, edits included."""

    def __init__(self, name: str = "room") -> None:
        self.name = name
        self.said: list[str] = []
        self.health = Health(ok=True, detail="open")
        self.steps: list[str] = []
        self.start_fault: Exception | None = None
        self.intake = "room 1"
        self.send_faults: list[Exception] = []
        """Raised by the next sends."""
        self.channel = self
        self.routes: tuple[Route, ...] = ()
        self._ids = count(1)
        self._site: Site | None = None

    @property
    def platform(self) -> Platform:
        def build(values: Mapping[str, str], site: Site) -> Adapter | None:
            self._site = site
            return _Door(self)

        return Platform(
            name=self.name,
            variables=(Variable(name="ROOM", help="nothing"),),
            build=build,
            paces=Paces(chat=FREE, bot=FREE),
        )

    async def hears(self, text: str, user: str = "7", **changes: Any) -> None:
        assert self._site is not None
        at = self._site.clock.now()
        number = f"u{next(self._ids)}"
        address = Address(platform=self.name, account="bot", chat=user)
        said = Inbound(address=address, update_id=number, user=user, text=text, sent_at=at)
        await self._site.accept(msgspec.structs.replace(said, **changes))

    async def hears_again(self, number: int, text: str, user: str = "7") -> None:
        """An update that the platform repeats."""
        ids, self._ids = self._ids, count(number)
        await self.hears(text, user)
        self._ids = ids

    async def sees(self, wanted: str, times: int = 1) -> str:
        """The newest text that has this in it."""
        await until(lambda: sum(wanted in text for text in self.said) >= times, lambda: self.said)
        return next(text for text in reversed(self.said) if wanted in text)

    def render(self, text: str) -> tuple[Part, ...]:
        return (Part(text=text, plain=text),) if text.strip() else ()

    def preview(self, text: str) -> Part | None:
        return None

    async def send(self, message: OutboxMessage) -> str:
        if self.send_faults:
            raise self.send_faults.pop(0)
        self.said.append(message.part.text)
        return f"m{len(self.said)}"

    async def edit(self, address: Address, platform_id: str, part: Part) -> None:
        self.said.append(part.text)

    async def typing(self, address: Address) -> None:
        pass

    async def lookup(self, message: OutboxMessage, since: datetime) -> str | None:
        return None

    async def fetch(self, attachment: Attachment, limit: int) -> bytes:
        raise PermanentError(attachment.ref)


class _Door:
    def __init__(self, room: Room) -> None:
        self._room = room
        self.channel = room
        self.routes: tuple[Route, ...] = ()
        self.intake = room.intake

    async def open(self) -> None:
        pass

    async def start(self) -> None:
        self._room.steps.append(f"start, {len(self._room.said)} said")
        if self._room.start_fault is not None:
            raise self._room.start_fault

    async def stop(self) -> None:
        self._room.steps.append("stop")

    async def close(self) -> None:
        self._room.steps.append("close")

    def health(self) -> Health:
        return self._room.health

    async def check(self) -> Health:
        return self._room.health


class FaultyStore:
    """A store that fails in what ``broken`` names, hangs in ``hanging``, and has no sound log of
    the keys in ``unsound``. ``journal`` is told of every call."""

    def __init__(self, real: Store | None = None, journal: list[str] | None = None) -> None:
        self._real = real or MemoryStore()
        self.journal: list[str] = [] if journal is None else journal
        self.broken: set[str] = set()
        self.hanging: set[str] = set()
        self.unsound: dict[str, Exception] = {}
        self.errors: dict[str, Exception] = {}
        """Raised by the calls of these names."""

    def __getattr__(self, name: str) -> Any:
        if name in self.hanging:
            return self._hang
        return self._fail if name in self.broken else partial(self._call, name)

    async def _call(self, name: str, *args: Any, **named: Any) -> Any:
        self.journal.append(name)
        if name in self.errors:
            raise self.errors[name]
        if name in ("load", "events") and args[0] in self.unsound:
            raise self.unsound[args[0]]
        return await getattr(self._real, name)(*args, **named)

    async def _fail(self, *_: object, **__: object) -> None:
        raise StorageError("disk full")

    async def _hang(self, *_: object, **__: object) -> None:
        await asyncio.Event().wait()


class House:
    """What outlives a process. ``settings`` are those that differ from the defaults."""

    def __init__(
        self, *lines: Any, tools: Mapping[str, Tool] | None = None, **settings: Any
    ) -> None:
        self.room = Room()
        self.clock = HandClock()
        self.store: Store = MemoryStore()
        self.script = ScriptedModel(*lines)
        self.model: Model | None = None
        """None: the script."""
        self.tools = tools or {}
        self.environment: dict[str, str] = {}
        given: dict[str, Any] = {
            "allowed_users": ("*",),
            "drain_seconds": 1,
            "stillhere_data": "/dev/null",
            **settings,
        }
        self.settings = Settings(**given)

    @property
    def ground(self) -> Ground:
        return Ground(
            settings=self.settings,
            environment=self.environment,
            store=self.store,
            platforms={self.room.name: self.room.platform},
            clock=self.clock,
            model=self.model or self.script,
            tools=self.tools,
        )

    @asynccontextmanager
    async def lives(self) -> AsyncGenerator[Service]:
        """From a start to a clean stop."""
        service = Service(self.ground)
        await service.start()
        try:
            yield service
        finally:
            await service.stop()

    async def sessions(self) -> list[str]:
        """The ids of all runs under the key, in order."""
        log = await self.store.events(KEY)
        opened = (msgspec.to_builtins(recorded.event) for recorded in log)
        return [event["session_id"] for event in opened if event["type"] == "SessionOpened"]

    async def events(self) -> list[str]:
        """The names of what happened under the key, in order."""
        log = await self.store.events(KEY)
        return [type(recorded.event).__name__ for recorded in log]

    async def outcomes(self) -> dict[str, int]:
        """What became of the messages taken; it always adds up."""
        ledger = (await self.store.ledger()).get("room", Ledger())
        assert ledger.balanced, ledger
        return {name: n for name, n in ledger.numbers.items() if n and name != "accepted"}


async def eventually(wanted: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await wanted():  # noqa: ASYNC110 (it is in the database that it happens)
            await asyncio.sleep(0.01)


async def until(wanted: Callable[[], bool], told: Callable[[], object] = lambda: "") -> None:
    """Looks often, fails after a while."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while not wanted():
        assert loop.time() < end, f"it did not come: {told()}"
        await asyncio.sleep(0.01)
