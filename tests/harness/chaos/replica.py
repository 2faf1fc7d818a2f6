"""One replica of the service: a process that its host starts again when it is killed."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx
import msgspec

from tests.harness.child import Birth
from tests.harness.lab import Zygote

LOOK_SECONDS = 0.02
ASK_SECONDS = 5.0
STILL = float("inf")

BirthOf = Callable[[str], Birth]
"""Of the life with that name."""


class Life(msgspec.Struct, kw_only=True):
    """Times are Unix time; ``frozen`` are those from which, and until when, it stood still."""

    name: str
    began: float
    trace: Path
    pid: int = 0
    ended: float | None = None
    code: int | None = None
    frozen: list[tuple[float, float]] = []

    def stood_still(self, at: float, slack: float) -> bool:
        return any(since <= at <= until + slack for since, until in self.frozen)


class Replica:
    """``lives`` are all processes that it was, oldest first."""

    def __init__(self, name: str, zygote: Zygote, birth_of: BirthOf) -> None:
        self.name = name
        self.lives: list[Life] = []
        self._zygote = zygote
        self._birth_of = birth_of
        self._wanted = True
        self._gone = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    async def up(self) -> None:
        await self._spawn()
        self._keeper = asyncio.create_task(self._keep())

    @property
    def life(self) -> Life:
        return self.lives[-1]

    @property
    def is_up(self) -> bool:
        return self.life.ended is None

    @property
    def stands_still(self) -> bool:
        return any(until == STILL for _, until in self.life.frozen)

    def signal(self, number: signal.Signals) -> None:
        """It may have died just now."""
        if self.is_up:
            with suppress(ProcessLookupError):
                os.kill(self.life.pid, number)

    async def freeze(self, seconds: float) -> None:
        """It stands still for so long, unless it is killed meanwhile."""
        life, since = self.life, time.time()
        life.frozen.append((since, STILL))
        self.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            life.frozen[-1] = (since, time.time())
            if life is self.life:
                self.signal(signal.SIGCONT)

    async def leaves(self, grace: float) -> bool:
        """SIGTERM, and SIGKILL after ``grace`` seconds, as a host does it; whether it needed it."""
        self._wanted = False
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace):
                await self._gone.wait()
        except TimeoutError:
            await self.dies()
            return True
        return False

    async def dies(self) -> None:
        self._wanted = False
        self.signal(signal.SIGKILL)
        await self._gone.wait()
        if self._keeper is not None:
            await self._keeper

    async def code_of(self, path: str) -> int:
        """What a host's health check is told; 0 when nobody answers."""
        port = self.life.trace.with_suffix(".port")
        try:
            number = int(port.read_text() or "0")
            async with httpx.AsyncClient(timeout=ASK_SECONDS, trust_env=False) as client:
                return (await client.get(f"http://127.0.0.1:{number}{path}")).status_code
        except (httpx.TransportError, OSError):
            return 0

    async def _spawn(self) -> None:
        birth = self._birth_of(f"{self.name}.{len(self.lives) + 1}")
        life = Life(name=Path(birth.trace).stem, began=time.time(), trace=Path(birth.trace))
        life.pid = await self._zygote.spawn(birth)
        self.lives.append(life)

    async def _keep(self) -> None:
        while True:
            status = await self._zygote.status(self.life.pid)
            if status is None:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            self.life.ended, self.life.code = time.time(), status
            if not self._wanted:
                break
            await self._spawn()
            if not self._wanted:
                self.signal(signal.SIGTERM)
        self._gone.set()
