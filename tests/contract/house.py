"""The whole service in a town, for as many lives as it takes; all but model and clock is real."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette

from bots.app import Service
from bots.ground import Ground
from bots.platforms import Adapter, Health
from bots.settings import Settings
from core.domain.ledger import Ledger
from core.domain.messages import ModelRequest, UserMessage
from core.models.scripted import Line, ScriptedModel
from core.ports import Pace, Paces
from storage.memory import MemoryStore
from tests.contract.town import Person, Town

PATIENCE = 20.0
"""Seconds that a test waits for what has to come, on a machine that may be busy."""
MINUTE = 60.0
FREE = Pace(0.0, 1000)
LINES = 20


def echo(request: ModelRequest) -> str:
    told = [message.text for message in request.messages if isinstance(message, UserMessage)]
    return f"re: {told[-1]}"


class FastClock:
    """``core.ports.Clock``. Real time, and what it was moved ahead; a sleep is a short one, but who
    sleeps for a minute or more wakes only when told that minutes pass."""

    def __init__(self) -> None:
        self._ahead = timedelta()
        self._minutes = asyncio.Event()

    def passes(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=seconds)

    def minutes_pass(self) -> None:
        self._minutes.set()

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    async def sleep(self, seconds: float) -> None:
        if seconds >= MINUTE:
            await self._minutes.wait()
            self._minutes.clear()
        await asyncio.sleep(min(seconds, 0.02))


class House:
    """What outlives a process. The model says ``lines`` and then echoes."""

    def __init__(self, town: Town, *lines: Line, **settings: Any) -> None:
        self.town = town
        self.store = MemoryStore()
        self.clock = FastClock()
        self.script = ScriptedModel(*lines, *[echo] * LINES)
        self._settings = settings
        with socket.create_server(("127.0.0.1", 0)) as found:
            self._place = found.getsockname()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._place[1]}"

    @asynccontextmanager
    async def lives(self) -> AsyncGenerator[Service]:
        """From a start to a clean stop, with its routes served meanwhile."""
        service = Service(self._ground())
        routes = [route for adapter in service.adapters.values() for route in adapter.routes]
        app = Starlette(routes=routes)
        config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
        server = uvicorn.Server(config)
        listener = socket.create_server(self._place)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await service.start()
        try:
            await until(lambda: self.adapter(service).health().ok)
            yield service
        finally:
            await service.stop()
            server.should_exit = True
            await serving
            listener.close()

    def adapter(self, service: Service) -> Adapter:
        return service.adapters[self.town.platform.name]

    def health(self, service: Service) -> Health:
        """While minutes pass."""
        self.clock.minutes_pass()
        return self.adapter(service).health()

    async def asked(self, times: int = 1) -> None:
        """The model, so many times in all."""
        await until(lambda: len(self.script.requests) >= times)

    async def hears(self, person: Person, *texts: str) -> None:
        """All of them and nothing else, each once, in order, when everything is done."""
        await until(lambda: len(person.sees()) >= len(texts), person.sees)
        await self.settles()
        assert person.sees() == list(texts), person.sees()

    async def hears_in(self, thread: int, person: Person, *texts: str) -> None:
        await until(lambda: len(person.sees_in(thread)) >= len(texts))
        await self.settles()
        assert person.sees_in(thread) == list(texts), person.sees_in(thread)

    async def settles(self) -> None:
        """Until no message waits for its answer and none is on its way."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while await self._is_busy():
            assert asyncio.get_running_loop().time() < deadline, await self._accounts()
            await asyncio.sleep(0.02)

    async def outcomes(self) -> dict[str, int]:
        """What became of the messages taken; it always adds up."""
        ledger = await self._accounts()
        assert ledger.balanced, ledger
        return {name: n for name, n in ledger.numbers.items() if n and name != "accepted"}

    async def _is_busy(self) -> bool:
        backlog = await self.store.backlog()
        on_its_way = sum(backlog.values()) - backlog.get("failed", 0)
        return "pending" in await self.outcomes() or on_its_way > 0

    async def _accounts(self) -> Ledger:
        return (await self.store.ledger()).get(self.town.platform.name, Ledger())

    def _ground(self) -> Ground:
        name = self.town.platform.name
        unpaced = Paces(chat=FREE, group=FREE, bot=FREE)
        given: dict[str, Any] = {
            "allowed_users": ("*",),
            "drain_seconds": 1,
            "stillhere_data": "/dev/null",
            "public_url": self.url,
            **self._settings,
        }
        return Ground(
            settings=Settings(**given),
            environment=self.town.environment(self.url),
            store=self.store,
            platforms={name: msgspec.structs.replace(self.town.platform, paces=unpaced)},
            clock=self.clock,
            model=self.script,
            tools={},
        )


async def until(wanted: Callable[[], object], told: Callable[[], object] = lambda: "") -> None:
    """Looks often, fails after a while."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while not wanted():
        assert loop.time() < end, f"it did not come: {told()}"
        await asyncio.sleep(0.01)
