"""One process of the service, started again when it has ended, as a supervisor does; it judges
none of its lives."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

from tests.harness.child import Birth

LOOK_SECONDS = 0.02


class Forks(Protocol):
    async def spawn(self, birth: Birth) -> int: ...

    async def status(self, pid: int) -> int | None: ...


async def at_once() -> bool:
    return True


class Keeper:
    """``life`` is the number of the newest of its lives, which are counted from ``first`` + 1;
    ``pid`` is 0 while it is down. One that was killed rises when ``may_rise`` says so."""

    def __init__(self, forks: Forks, birth_of: Callable[[int], Birth], first: int = 0) -> None:
        self.first = first
        self.life = first
        self.pid = 0
        self.codes: list[int] = []
        self.ends: list[datetime] = []
        self.when_dead: Callable[[], object] = lambda: None
        self.may_rise: Callable[[], Awaitable[bool]] = at_once
        self._forks = forks
        self._birth_of = birth_of
        self._wanted = False
        self._parting = signal.SIGTERM
        self._task: asyncio.Task[None] | None = None

    @property
    def lives(self) -> range:
        """Their numbers."""
        return range(self.first + 1, self.life + 1)

    @property
    def died(self) -> int:
        """How many lives ended by SIGKILL."""
        return self.codes.count(-signal.SIGKILL)

    async def up(self) -> None:
        self._wanted = True
        await self._spawn()
        self._task = asyncio.create_task(self._keep())

    def part(self, number: signal.Signals) -> None:
        """It stays down then. One that is being started just now hears it as soon as it has a
        pid."""
        self._wanted, self._parting = False, number
        self.signal(number)

    async def gone(self) -> None:
        if self._task is not None:
            await self._task

    def signal(self, number: signal.Signals) -> None:
        """It may have died just now."""
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def _keep(self) -> None:
        while True:
            status = await self._forks.status(self.pid)
            if status is None:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            self.pid = 0
            self.codes.append(status)
            self.ends.append(datetime.now(UTC))
            if status == -signal.SIGKILL:
                self.when_dead()
            while self._wanted and not await self.may_rise():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
            if not self._wanted:
                return
            await self._spawn()
            if not self._wanted:
                self.signal(self._parting)

    async def _spawn(self) -> None:
        self.life += 1
        self.pid = await self._forks.spawn(self._birth_of(self.life))
