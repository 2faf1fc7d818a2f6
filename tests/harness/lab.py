"""One service with its stand-ins, killed and started again; it looks only from outside."""

import asyncio
import signal
import socket
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import httpx
import msgspec

from core.domain.events import Recorded
from storage.store import SqlStore
from tests.harness.child import HALT, Birth
from tests.harness.keeper import Keeper
from tests.harness.kills import NO_KILL, Cell, Form, Kill, Write, kills_of, whose
from tests.harness.reader import Reader
from tests.harness.scripted import Script
from tests.harness.surroundings import effects_in, surroundings
from tests.harness.towns import TOWNS, TelegramTown
from tests.harness.zygote import Request
from tests.standins.base import Call
from tests.standins.faults import Fault, Reset
from tests.standins.openai import MODELS, OpenAIStandIn
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
    form: Form = "alone"
    halt: int = 0
    """The write of the first life before which it stands still (see ``halted``)."""


class Lab:
    """``calls`` are those of each life that are counted. ``spoil`` may give one of them a fault."""

    def __init__(self, zygote: Zygote, place: Place, cell: Cell = NO_KILL) -> None:
        self.town = TOWNS[place.town]()
        self.model = OpenAIStandIn(Script())
        self.calls: defaultdict[int, list[str]] = defaultdict(list)
        self.when_dead: Callable[[], object] | None = None
        self.spoil: Callable[[Call], Fault | None] = lambda call: None
        self._place = place
        self._cell = cell
        self._done: set[Kill] = set()
        self._reader = Reader(place.database)
        self._ports: dict[int, int] = {}
        self._first = self._keeper(zygote)

    def _keeper(self, zygote: Zygote, first: int = 0) -> Keeper:
        keeper = Keeper(zygote, self._birth, first)
        keeper.when_dead = self._tell_of_death
        self._ports[first] = free_port() if self._place.webhook else 0
        return keeper

    @property
    def keepers(self) -> tuple[Keeper, ...]:
        return (self._first,)

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
        await self._parts(signal.SIGKILL)
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
        """Of the first process; 0 while it is down."""
        return self._first.pid

    @property
    def lives(self) -> int:
        """How many there were."""
        return sum(len(keeper.lives) for keeper in self.keepers)

    @property
    def codes(self) -> list[int]:
        """How each life ended."""
        return [code for keeper in self.keepers for code in keeper.codes]

    @property
    def ends(self) -> list[datetime]:
        return [end for keeper in self.keepers for end in keeper.ends]

    @property
    def died(self) -> int:
        """How many lives ended by SIGKILL."""
        return sum(keeper.died for keeper in self.keepers)

    @property
    def struck(self) -> int:
        """How often something was done to a process of the service."""
        return self.died

    @property
    def was_starved(self) -> bool:
        """The machine was too busy for what was found to count."""
        return False

    @property
    def restarts(self) -> int:
        """How often a turn may have been picked up by another life."""
        return self.lives - 1

    async def up(self) -> None:
        """Starts the service and keeps it up, as a supervisor does, until ``down``."""
        await self._first.up()

    async def down(self) -> None:
        """SIGTERM, and until it is gone. One that was killed meanwhile stays down."""
        await self._parts(signal.SIGTERM)

    async def leaves(self) -> None:
        """``down`` for the one that is to be killed, where there are several."""
        await self.down()

    async def returns(self) -> None:
        await self._first.up()

    async def autopsy(self) -> None:
        """What every thread of a service that hangs is doing, into its log."""
        for keeper in self.keepers:
            keeper.signal(signal.SIGUSR1)
        await asyncio.sleep(DUMP_SECONDS)

    def kill(self) -> None:
        self._first.signal(signal.SIGKILL)

    async def _parts(self, number: signal.Signals) -> None:
        for keeper in self.keepers:
            keeper.part(number)
        await asyncio.gather(*(keeper.gone() for keeper in self.keepers))

    def _tell_of_death(self) -> None:
        if self.when_dead is not None:
            self.when_dead()

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
        return await self._readiness(self._first)

    async def _readiness(self, keeper: Keeper) -> tuple[int, str]:
        try:
            async with httpx.AsyncClient(timeout=8.0) as client:
                answer = await client.get(f"http://127.0.0.1:{self._heard_on(keeper)}/readyz")
        except (httpx.TransportError, OSError) as error:
            return 0, repr(error)
        return answer.status_code, answer.text

    def writes(self) -> dict[int, list[Write]]:
        """Of each life, until its end, in order."""
        return {life: self._written(life) for keeper in self.keepers for life in keeper.lives}

    def until_struck(self) -> dict[int, list[Write]]:
        """What each life had written when something was done to it."""
        return self.writes()

    def complaints(self) -> list[str]:
        """What only this lab can know of."""
        return []

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
        return self._log_of(0)

    def _log_of(self, first: int) -> str:
        path = self._log_file(first)
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _log_file(self, first: int) -> Path:
        return self._place.folder / f"log{first or ''}"

    def _trace(self, life: int) -> Path:
        return self._place.folder / f"life{life}.trace"

    def _written(self, life: int) -> list[Write]:
        trace = self._trace(life)
        lines = trace.read_text(encoding="utf-8").splitlines() if trace.exists() else []
        return [msgspec.json.decode(line, type=Write) for line in lines]

    def _heard_on(self, keeper: Keeper) -> int:
        """0 when no life came so far. One may have died before it had written its port down."""
        ports = [self._trace(life).with_suffix(".port") for life in reversed(keeper.lives)]
        told = (port.read_text() for port in ports if port.exists())
        return next((int(port) for port in told if port), 0)

    def _birth(self, life: int) -> Birth:
        place, first = self._place, whose(life)
        return Birth(
            environment={
                **surroundings(place.folder, place.database, self.model.url),
                "PORT": str(self._ports[first]),
                "DRAIN_SECONDS": "2",
                **self.town.environment(self._public_port),
                **place.environment,
            },
            log=str(self._log_file(first)),
            trace=str(self._trace(life)),
            platform=place.town,
            kill=self._cell.of(life, "write"),
            halt=place.halt if life == 1 else 0,
            lease=place.lease,
            rate=place.rate,
        )

    @property
    def _public_port(self) -> int:
        """Where a platform that delivers by posts finds the service."""
        return self._ports[0]

    def _caller(self, call: Call) -> Keeper:
        return self._first

    def _before(self, call: Call) -> Fault | None:
        if not self._counts(call):
            return None
        self.calls[self._caller(call).life].append(call.method)
        return self._struck_by(call, after=False) or self.spoil(call)

    def _after(self, call: Call) -> Fault | None:
        if self.town.brought(call):
            self.calls[self._caller(call).life].append(call.method)
        elif not self._counts(call):
            return None
        return self._struck_by(call, after=True)

    def _counts(self, call: Call) -> bool:
        """Whether the key is good is asked beside all else, and has no place in the order."""
        return call.method != MODELS and self.town.counts(call)

    def _struck_by(self, call: Call, *, after: bool) -> Fault | None:
        keeper = self._caller(call)
        kill = self._cell.of(keeper.life, "call")
        place = (len(self.calls[keeper.life]), after)
        if kill is None or kill in self._done or place != (kill.number, kill.after):
            return None
        if not keeper.pid:
            return None
        self._done.add(kill)
        return self._strike(keeper, kill)

    def _strike(self, keeper: Keeper, kill: Kill) -> Fault | None:
        keeper.signal(signal.SIGKILL)
        return Reset()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
