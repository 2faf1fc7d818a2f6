"""One service with its stand-ins, killed and started again; it looks only from outside."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from storage.store import SqlStore
from tests.harness.child import LEDGER, Birth
from tests.harness.scripted import respond
from tests.harness.zygote import Request
from tests.standins.base import Call
from tests.standins.faults import Fault, Reset
from tests.standins.openai import OpenAIStandIn
from tests.standins.telegram import TelegramStandIn

ROOT = Path(__file__).parents[2]
QUIET_METHODS = ("getMe", "setMyCommands", "deleteWebhook", "sendChatAction")
"""Calls that a kill around them is not counted for: nothing a user sees hangs on them."""
START_SECONDS = 30.0


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
async def zygote() -> AsyncGenerator[Zygote]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.harness.zygote",
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Zygote(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


class Cell(msgspec.Struct, frozen=True):
    """Where to kill: the ``number``-th write, or counted outside call, since the ``life``-th start
    on purpose; before it has an effect, or after and before anyone is told."""

    kind: str
    life: int
    number: int
    after: bool

    def __str__(self) -> str:
        return f"{self.kind} {self.life}.{self.number} {'after' if self.after else 'before'}"


NO_KILL = Cell("none", 0, 0, after=False)


class Lab:
    """``died`` counts the lives that ended by SIGKILL."""

    def __init__(self, zygote: Zygote, folder: Path, database: str, cell: Cell) -> None:
        self.telegram = TelegramStandIn()
        self.model = OpenAIStandIn(respond)
        self.died = 0
        self.calls: dict[int, list[str]] = {}
        self._killed = False
        self._zygote = zygote
        self._folder = folder
        self._database = database
        self._cell = cell
        self._pid = 0
        self._keeper: asyncio.Task[None] | None = None
        self._wanted = False
        self._parting = signal.SIGTERM
        self._life = 0
        self._status: int | None = None

    async def __aenter__(self) -> "Lab":
        self.telegram.start()
        self.model.start()
        for standin in (self.telegram, self.model):
            standin.before = self._before
            standin.after = self._after
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._part(signal.SIGKILL)
        if self._keeper is not None:
            await self._keeper
        await asyncio.gather(
            asyncio.to_thread(self.telegram.stop), asyncio.to_thread(self.model.stop)
        )

    async def up(self) -> None:
        """Starts the service and keeps it up, as a supervisor does, until ``down``."""
        self._wanted = True
        self._life += 1
        self.calls[self._life] = []
        self._pid = await self._zygote.spawn(self._birth(again=False))
        self._keeper = asyncio.create_task(self._keep())

    async def down(self) -> int | None:
        """SIGTERM, and the exit code; None where it had to be started again to hear it."""
        self._part(signal.SIGTERM)
        assert self._keeper is not None
        await self._keeper
        return self._status

    def _part(self, number: signal.Signals) -> None:
        """One that is being started just now hears it as soon as it has a pid."""
        self._wanted, self._parting = False, number
        if self._pid:
            os.kill(self._pid, number)

    async def _keep(self) -> None:
        while True:
            self._status = await self._zygote.status(self._pid)
            if self._status is None:
                await asyncio.sleep(0.02)
                continue
            self._pid = 0
            self.died += self._status == -signal.SIGKILL
            if not self._wanted:
                return
            self._pid = await self._zygote.spawn(self._birth(again=True))
            if not self._wanted:
                os.kill(self._pid, self._parting)

    async def quiet(self, patience: float) -> None:
        """Until `stillhere sessions list` would show no conversation at work."""
        store = await SqlStore.open(self._database, read_only=True)
        try:
            async with asyncio.timeout(patience):
                while any(info.open_turn for info in await store.streams()):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        finally:
            await store.close()

    def writes(self, life: int) -> list[str]:
        """What was written in that life, until a kill, by name and in order."""
        trace = self._trace(life)
        lines = trace.read_text(encoding="utf-8").splitlines() if trace.exists() else []
        return [line.split()[1] for line in lines]

    def cells(self) -> list[Cell]:
        """Every place to kill that this run has passed."""
        found: list[Cell] = []
        for life, calls in self.calls.items():
            numbers = range(1, len(self.writes(life)) + 1)
            found += [Cell("write", life, n, after) for n in numbers for after in (False, True)]
            found += [
                Cell("call", life, n, after)
                for n, method in enumerate(calls, 1)
                for after in ((True,) if method == "getUpdates" else (False, True))
            ]
        return found

    def _trace(self, life: int) -> Path:
        return self._folder / f"life{life}.trace"

    @property
    def effects(self) -> list[str]:
        ledger = self._folder / "ledger"
        return ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []

    def log(self) -> str:
        return (self._folder / "log").read_text(encoding="utf-8", errors="replace")

    def _birth(self, *, again: bool) -> Birth:
        here = self._cell.kind == "write" and self._cell.life == self._life and not again
        kill = self._cell if here else NO_KILL
        return Birth(
            environment={
                "PATH": os.environ["PATH"],
                "HOME": str(self._folder),
                "DATABASE_URL": self._database,
                "STILLHERE_DATA": str(self._folder),
                "MODEL": "openai/test",
                "OPENAI_API_KEY": "sk-stand-in-key",
                "OPENAI_API_BASE": f"{self.model.url}/v1",
                "TELEGRAM_BOT_TOKEN": self.telegram.token,
                "TELEGRAM_API_URL": self.telegram.url,
                "ALLOWED_USERS": "*",
                "PORT": "0",
                "DRAIN_SECONDS": "2",
                "PTB_TIMEDELTA": "true",
                LEDGER: str(self._folder / "ledger"),
            },
            log=str(self._folder / "log"),
            trace=str(self._folder / "again.trace" if again else self._trace(self._life)),
            kill_at=kill.number,
            kill_after=kill.after,
        )

    def _before(self, call: Call) -> Fault | None:
        if not _counts(call):
            return None
        self.calls[self._life].append(call.method)
        return self._kill(call, after=False)

    def _after(self, call: Call) -> Fault | None:
        if call.method == "getUpdates" and call.effect:
            self.calls[self._life].append(call.method)
        elif not _counts(call):
            return None
        return self._kill(call, after=True)

    def _kill(self, call: Call, *, after: bool) -> Fault | None:
        place = Cell("call", self._life, len(self.calls[self._life]), after)
        if self._cell != place or self._killed or not self._pid:
            return None
        self._killed = True
        os.kill(self._pid, signal.SIGKILL)
        return Reset()


def _counts(call: Call) -> bool:
    return call.method not in (*QUIET_METHODS, "getUpdates")
