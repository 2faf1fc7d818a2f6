"""Runs a scenario over its cells, some at a time; each has its list of complaints."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from tests.harness.checks import Verdict, judge
from tests.harness.kills import NO_KILL, Cell, Kill
from tests.harness.lab import Lab, Place, Zygote
from tests.harness.scenarios import PATIENCE, Scenario, Stage

AT_A_TIME = 5
CELL_SECONDS = 150.0
"""A cell that hangs is a fault to be told, not a run that never ends."""
LOG_TAIL = 3000
LEASE = 2.0

NewDatabase = Callable[[Path], Awaitable[str]]
"""The address of a new database that has its tables; the folder is the cell's."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """``doubled`` where one message came twice, as promised where Telegram cannot be asked;
    ``may_double`` where it could have. ``asked`` and ``looked`` are how often the model was asked
    and a read-only tool ran."""

    cell: Cell
    faults: list[str]
    killed: int
    may_double: bool
    doubled: bool
    asked: int
    looked: int


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What every cell of a run stands on."""

    zygote: Zygote
    folder: Path
    database: NewDatabase
    environment: dict[str, str] = {}


class Runner:
    def __init__(self, ground: Ground, scenario: Scenario) -> None:
        self._ground = ground
        self._scenario = scenario
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._number = 0

    async def count(self, first: Cell = NO_KILL) -> list[Cell]:
        """The cells of a run that must itself be without fault. After ``first`` they are those of
        the life that begins with that kill: a second one, in the middle of recovery."""
        passed, result = await self._run(first)
        assert not result.faults, result.faults
        if first.kills:
            assert result.killed, f"{first} was not reached"
            passed = [kill for kill in passed if kill.life == first.kills[-1].life + 1]
        return [Cell((*first.kills, kill)) for kill in passed]

    async def run(self, cells: Sequence[Cell]) -> list[Result]:
        async def one(cell: Cell) -> Result:
            async with self._places:
                return (await self._run(cell))[1]

        return await asyncio.gather(*map(one, cells))

    async def _run(self, cell: Cell) -> tuple[list[Kill], Result]:
        self._number += 1
        folder = self._ground.folder / f"cell{self._number}"
        await asyncio.to_thread(folder.mkdir, parents=True)
        place = Place(
            folder=folder,
            database=await self._ground.database(folder),
            environment={**self._scenario.environment, **self._ground.environment},
            lease=LEASE * self._scenario.rate,
            rate=self._scenario.rate,
            webhook=self._scenario.webhook,
        )
        async with Lab(self._ground.zygote, place, cell) as lab:
            stage = Stage(lab)
            trouble = await self._played(stage)
            verdict = await judge(stage, self._scenario, cell)
            result, passed = _result(stage, cell, trouble, verdict), lab.kills()
        if not result.faults:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return passed, result

    async def _played(self, stage: Stage) -> list[str]:
        try:
            async with asyncio.timeout(CELL_SECONDS):
                await self._scenario.play(stage)
                await stage.lab.settled(PATIENCE)
                await stage.lab.down()
        except (AssertionError, TimeoutError) as error:
            return [f"not finished: {error!r}"[:500]]
        return []


def _result(stage: Stage, cell: Cell, trouble: list[str], verdict: Verdict) -> Result:
    lab = stage.lab
    found = [*trouble, *verdict.faults]
    return Result(
        cell=cell,
        faults=[*found, lab.log()[-LOG_TAIL:]] if found else [],
        killed=lab.died,
        may_double=bool(verdict.allowed),
        doubled=bool(verdict.extra),
        asked=len(lab.model.requests),
        looked=sum(line.startswith("look ") for line in lab.effects),
    )
