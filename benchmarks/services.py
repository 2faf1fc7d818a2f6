"""The service as its users start it, several processes on one PostgreSQL, and beside them stand-ins
of Telegram and of a model's vendor; it measures nothing but what each process uses."""

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import msgspec
import psutil
from sqlalchemy.ext.asyncio import create_async_engine

from storage.migrate import migrate
from tests.harness.surroundings import surroundings
from tests.postgres import PostgresServer
from tests.standins.openai import OpenAIStandIn
from tests.standins.telegram import TelegramStandIn

ROOT = Path(__file__).parents[1]
MIB = 2**20
PATIENCE = 120.0
"""Seconds for whatever has to come before anything is measured."""
LOOK_SECONDS = 0.05

DURABLE = ("fsync=on", "full_page_writes=on", "shared_buffers=128MB")
"""As a server has it that is not for tests alone."""


class Burden(msgspec.Struct, frozen=True):
    """Seconds of the processor since they began: of the services, of PostgreSQL, and of the process
    that the stand-ins and the people are in."""

    services: float
    database: float
    stand_ins: float

    def since(self, earlier: "Burden", seconds: float) -> "Burden":
        """In cores."""
        return Burden(
            (self.services - earlier.services) / seconds,
            (self.database - earlier.database) / seconds,
            (self.stand_ins - earlier.stand_ins) / seconds,
        )


class Service:
    """One process; ``name`` is how the stand-ins know it."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, port: int) -> None:
        self.name = name
        self._process = process
        self._port = port

    @property
    def memory(self) -> float:
        """Resident, in MiB."""
        return psutil.Process(self._process.pid).memory_info().rss / MIB

    @property
    def worked(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return times.user + times.system

    async def is_ready(self) -> bool:
        assert self._process.returncode is None, f"{self.name} has ended; see its log"
        async with httpx.AsyncClient(trust_env=False) as client:
            try:
                answer = await client.get(f"http://127.0.0.1:{self._port}/readyz")
            except httpx.TransportError:
                return False
        return answer.status_code == 200

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.terminate()
        await self._process.wait()

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


class Town:
    """``services`` are those that run."""

    def __init__(self, folder: Path, server: PostgresServer, database: str) -> None:
        self.telegram = TelegramStandIn()
        self.model = OpenAIStandIn()
        self.services: list[Service] = []
        self.database = database
        self._folder = folder
        self._server = server

    async def start(self, name: str, address: str = "", **variables: str) -> Service:
        """Returns when it is ready. ``address`` is what the database's URL ends with."""
        port = _free_port()
        environment = {
            **surroundings(self._folder, self._server.url(self.database) + address, self.model.url),
            "PYTHONPATH": str(ROOT),
            "OPENAI_API_KEY": name,
            "TELEGRAM_BOT_TOKEN": self.telegram.token,
            "TELEGRAM_API_URL": self.telegram.url_for(name),
            "PORT": str(port),
            "DRAIN_SECONDS": "2",
            **variables,
        }
        with (self._folder / f"{name}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bots", "run"),
                cwd=self._folder,
                env=environment,
                stdout=log,
                stderr=log,
            )
        service = Service(name, process, port)
        self.services.append(service)
        await until(service.is_ready, f"{name} is ready")
        return service

    async def stop(self, service: Service) -> None:
        self.services.remove(service)
        await service.stop()

    def log_of(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    async def rows(self, query: str, database: str = "") -> list[tuple[object, ...]]:
        engine = create_async_engine(
            self._server.url(database or self.database).replace(
                "postgresql:", "postgresql+asyncpg:"
            )
        )
        try:
            async with engine.connect() as connection:
                return [tuple(row) for row in await connection.exec_driver_sql(query)]
        finally:
            await engine.dispose()

    def burden(self) -> Burden:
        own = psutil.Process().cpu_times()
        return Burden(
            sum(service.worked for service in self.services),
            _worked(psutil.Process(self._server.pid)),
            own.user + own.system,
        )

    async def end(self) -> None:
        await asyncio.gather(*(service.kill() for service in self.services))


@asynccontextmanager
async def town(folder: Path, server: PostgresServer) -> AsyncGenerator[Town]:
    """On a database of its own."""
    database = await server.new_database()
    await migrate(server.url(database))
    place = folder.absolute() / database  # noqa: ASYNC240 - it is asked once, before anything is measured
    place.mkdir(parents=True)
    found = Town(place, server, database)
    async with found.telegram, found.model:
        try:
            yield found
        finally:
            await found.end()


async def until(holds: Callable[[], Awaitable[bool]], what: str, seconds: float = PATIENCE) -> None:
    """Raises TimeoutError."""
    try:
        async with asyncio.timeout(seconds):
            while not await holds():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise TimeoutError(f"not within {seconds:.0f} s: {what}") from None


async def it_holds(holds: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """As ``until``."""

    async def look() -> bool:
        return holds()

    await until(look, what, seconds)


def _worked(first: psutil.Process) -> float:
    """With all that it started and that is still there."""
    seconds = 0.0
    for process in (first, *first.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system
    return seconds


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
