"""One service with its stand-ins, killed and started again; it looks only from outside."""

import asyncio
import os
import signal
import socket
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx
import msgspec

from core.domain.events import Recorded
from storage.store import SqlStore
from tests.harness.child import HALT, Birth
from tests.harness.kills import NO_KILL, Cell, Kill, Kind, Write, kills_of
from tests.harness.reader import Reader
from tests.harness.scripted import Script
from tests.harness.surroundings import effects_in, surroundings
from tests.harness.towns import TOWNS, TelegramTown
from tests.harness.zygote import Request
from tests.standins.base import Call
from tests.standins.faults import Fault, Reset
from tests.standins.openai import OpenAIStandIn
from tests.standins.telegram import TelegramStandIn

ROOT = Path(__file__).parents[2]
LOOK_SECONDS = 0.05
DUMP_SECONDS = 0.5


class Zygote:
    """The other end of ``tests.harness.zygote``."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()

    async def spawn(self, birth: Birth) -> int:
        return (await self._ask(Request(spawn=birth)))["pid"] or 0

    async def status(self, pid: int) -> int | None:
        return (await self._ask(Request(poll=pid)))["status"]

    async def _ask(self, request: Request) -> dict[str, int | None]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._turn:
            self._process.stdin.write(msgspec.json.encode(request) + b"\n")
            line = await self._process.stdout.readline()
        return msgspec.json.decode(line)


@asynccontextmanager
async def zygote(root: Path = ROOT) -> AsyncGenerator[Zygote]:
    """Of the service whose code lies under ``root``."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.harness.zygote",
        cwd=root,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Zygote(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a lab works: a folder of its own, and a database that has its tables already."""

    folder: Path
    database: str
    town: str = "telegram"
    environment: dict[str, str] = {}
    lease: float = 2.0
    rate: float = 1.0
    webhook: bool = False
    halt: int = 0
    """The write of the first life before which it stands still (see ``halted``)."""


class Lab:
    """``died`` counts the lives that ended by SIGKILL, ``lives`` all of them."""

    def __init__(self, zygote: Zygote, place: Place, cell: Cell = NO_KILL) -> None:
        self.town = TOWNS[place.town]()
        self.model = OpenAIStandIn(Script())
        self.died = 0
        self.lives = 0
        self.codes: list[int] = []
        self.ends: list[datetime] = []
        self.calls: defaultdict[int, list[str]] = defaultdict(list)
        self.when_dead: Callable[[], object] | None = None
        self.spoil: Callable[[Call], Fault | None] = lambda call: None
        self._zygote = zygote
        self._place = place
        self._cell = cell
        self._pid = 0
        self._keeper: asyncio.Task[None] | None = None
        self._wanted = False
        self._parting = signal.SIGTERM
        self._killed: set[Kill] = set()
        self._reader = Reader(place.database)
        self._port = _free_port() if place.webhook else 0

    async def __aenter__(self) -> "Lab":
        self.town.stand_in.start()
        self.model.start()
        for standin in (self.town.stand_in, self.model):
            standin.before = self._before
            standin.after = self._after
        await self._remember()
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._part(signal.SIGKILL)
        if self._keeper is not None:
            await self._keeper
        await self._reader.close()
        await asyncio.gather(
            asyncio.to_thread(self.town.stand_in.stop), asyncio.to_thread(self.model.stop)
        )

    @property
    def folder(self) -> Path:
        return self._place.folder

    async def _remember(self) -> None:
        if self.town.known:
            store = await SqlStore.open(self._place.database)
            for name, value in self.town.known.items():
                await store.set_fact(name, value)
            await store.close()

    @property
    def telegram(self) -> TelegramStandIn:
        """Where the town is Telegram's."""
        assert isinstance(self.town, TelegramTown)
        return self.town.stand_in

    @property
    def database(self) -> str:
        """Its address."""
        return self._place.database

    @property
    def rate(self) -> float:
        return self._place.rate

    @property
    def pid(self) -> int:
        """0 while it is down."""
        return self._pid

    async def up(self) -> None:
        """Starts the service and keeps it up, as a supervisor does, until ``down``."""
        self._wanted = True
        await self._spawn()
        self._keeper = asyncio.create_task(self._keep())

    async def down(self) -> None:
        """SIGTERM, and until it is gone. One that was killed meanwhile stays down."""
        self._part(signal.SIGTERM)
        assert self._keeper is not None
        await self._keeper

    async def autopsy(self) -> None:
        """What every thread of a service that hangs is doing, into its log."""
        self._signal(signal.SIGUSR1)
        await asyncio.sleep(DUMP_SECONDS)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        """It may have died just now."""
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)

    @property
    def has_one_owner(self) -> bool:
        """Nobody else can hold the leases of a process that died: they end with it."""
        return self._place.database.startswith("sqlite")

    async def store(self) -> SqlStore:
        """For reading, beside the running service."""
        return await self._reader.store()

    async def settled(self, patience: float) -> None:
        """Until nobody waits for anything: no turn is open, no message pending or under way."""
        async with asyncio.timeout(patience):
            while not await self._is_settled():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)

    async def _is_settled(self) -> bool:
        return not self.town.pending and await self._reader.nobody_waits()

    async def halted(self, patience: float) -> Path:
        """The file that holds the service at the write where it was to halt."""
        flag = self._trace(1).with_suffix(HALT)
        async with asyncio.timeout(patience):
            while not flag.exists():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        return flag

    async def logs(self) -> dict[str, tuple[Recorded, ...]]:
        """Those that can be read."""
        return await self._reader.logs()

    async def readiness(self) -> tuple[int, str]:
        """What a host's health check is told; 0 when nobody listens."""
        try:
            async with httpx.AsyncClient(timeout=8.0) as client:
                answer = await client.get(f"http://127.0.0.1:{self._heard_on()}/readyz")
        except (httpx.TransportError, OSError) as error:
            return 0, repr(error)
        return answer.status_code, answer.text

    def writes(self) -> dict[int, list[Write]]:
        """Of each life, until its end, in order."""
        return {life: self._written(life) for life in range(1, self.lives + 1)}

    def kills(self) -> list[Kill]:
        """Every place to kill that this run has passed."""
        found: list[Kill] = []
        for life, writes in self.writes().items():
            names = [write.name for write in writes if not write.done]
            found += [*kills_of(life, "write", names), *kills_of(life, "call", self.calls[life])]
        return found

    @property
    def effects(self) -> list[str]:
        """What the tools did, a line each."""
        return effects_in(self._place.folder)

    def log(self) -> str:
        path = self._place.folder / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _part(self, number: signal.Signals) -> None:
        """One that is being started just now hears it as soon as it has a pid."""
        self._wanted, self._parting = False, number
        self._signal(number)

    async def _keep(self) -> None:
        while True:
            status = await self._zygote.status(self._pid)
            if status is None:
                await asyncio.sleep(0.02)
                continue
            self._pid = 0
            self.codes.append(status)
            self.died += status == -signal.SIGKILL
            self.ends.append(datetime.now(UTC))
            if self.when_dead is not None and status == -signal.SIGKILL:
                self.when_dead()
            if not self._wanted:
                return
            await self._spawn()
            if not self._wanted:
                self._signal(self._parting)

    async def _spawn(self) -> None:
        self.lives += 1
        self._pid = await self._zygote.spawn(self._birth(self.lives))

    def _trace(self, life: int) -> Path:
        return self._place.folder / f"life{life}.trace"

    def _written(self, life: int) -> list[Write]:
        trace = self._trace(life)
        lines = trace.read_text(encoding="utf-8").splitlines() if trace.exists() else []
        return [msgspec.json.decode(line, type=Write) for line in lines]

    def _heard_on(self) -> int:
        """0 when no life came so far. One may have died before it had written its port down."""
        ports = [self._trace(life).with_suffix(".port") for life in range(self.lives, 0, -1)]
        told = (port.read_text() for port in ports if port.exists())
        return next((int(port) for port in told if port), 0)

    def _birth(self, life: int) -> Birth:
        place = self._place
        return Birth(
            environment={
                **surroundings(place.folder, place.database, self.model.url),
                "PORT": str(self._port),
                "DRAIN_SECONDS": "2",
                **self.town.environment(self._port),
                **place.environment,
            },
            log=str(place.folder / "log"),
            trace=str(self._trace(life)),
            platform=place.town,
            kill=self._cell.of(life, "write"),
            halt=place.halt if life == 1 else 0,
            lease=place.lease,
            rate=place.rate,
        )

    def _before(self, call: Call) -> Fault | None:
        if not self.town.counts(call):
            return None
        self.calls[self.lives].append(call.method)
        return self._struck(call, after=False) or self.spoil(call)

    def _after(self, call: Call) -> Fault | None:
        if self.town.brought(call):
            self.calls[self.lives].append(call.method)
        elif not self.town.counts(call):
            return None
        return self._struck(call, after=True)

    def _struck(self, call: Call, *, after: bool) -> Fault | None:
        kind: Kind = "call"
        kill = self._cell.of(self.lives, kind)
        place = (len(self.calls[self.lives]), after)
        if kill is None or kill in self._killed or place != (kill.number, kill.after):
            return None
        if not self._pid:
            return None
        self._killed.add(kill)
        self.kill()
        return Reset()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
