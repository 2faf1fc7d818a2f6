"""Runs a scenario over its cells, some at a time; each has its list of complaints."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec

from tests.harness.checks import Verdict, judge
from tests.harness.kills import NO_KILL, Cell, Form, Kill
from tests.harness.lab import Lab, Place, Zygote
from tests.harness.pair import PairLab
from tests.harness.stage import PATIENCE, Scenario, Stage

AT_A_TIME = 6
CELL_SECONDS = 300.0
"""A cell that hangs is a fault to be told, not a run that never ends."""
LOG_TAIL = 6000
PAIRS_AT_A_TIME = 2
"""Of cells with two replicas, which must not lose their leases by being slow."""
LEASE = 2.0
PAIR_LEASE = 2.5
LONGER = (1.0, 2.0, 4.0)
"""Times a lease lasts in each try."""
QUICK_LEASE = 0.6
"""Seconds of ours where the clock runs fast; the jobs run every third of a lease, by its number."""

NewDatabase = Callable[[Path], AbstractAsyncContextManager[str]]
"""The address of a new database that has its tables; the folder is the cell's."""


class NotReachedError(Exception):
    """The run did not pass by the place of its first kill."""


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
    places: asyncio.Semaphore
    environment: dict[str, str] = {}
    town: str = "telegram"
    form: Form = "alone"
    patience: float = PATIENCE


class Runner:
    def __init__(self, ground: Ground, scenario: Scenario) -> None:
        self._ground = ground
        self._scenario = scenario
        self._number = 0

    async def count(self, first: Cell = NO_KILL) -> list[Cell]:
        """The cells of a run that must itself be without fault. After ``first`` they are those of
        the life that begins with that kill: a second one, in the middle of recovery. Raises
        NotReachedError."""
        passed, result = await self._run(first)
        assert not result.faults, result.faults
        if first.kills:
            if not result.killed:
                raise NotReachedError(str(first))
            passed = [kill for kill in passed if kill.life == first.kills[-1].life + 1]
        return [Cell((*first.kills, kill)) for kill in passed]

    async def run(self, cells: Sequence[Cell]) -> list[Result]:
        return [result for _, result in await asyncio.gather(*map(self._run, cells))]

    async def _run(self, cell: Cell) -> tuple[list[Kill], Result]:
        """On a machine that is too busy for its leases again, with longer ones."""
        async with self._ground.places:
            for longer in LONGER[:-1]:
                passed, result, starved = await self._run_now(cell, longer)
                if not (result.faults and starved):
                    return passed, result
            passed, result, _ = await self._run_now(cell, LONGER[-1])
            return passed, result

    async def _run_now(self, cell: Cell, longer: float) -> tuple[list[Kill], Result, bool]:
        self._number += 1
        folder = self._ground.folder / f"cell{self._number}"
        await asyncio.to_thread(folder.mkdir, parents=True)
        async with self._ground.database(folder) as database:
            place = self._place(folder, database, longer)
            kind = Lab if place.form == "alone" else PairLab
            async with kind(self._ground.zygote, place, cell) as lab:
                stage = Stage(lab, self._ground.patience)
                trouble = await self._played(stage)
                verdict = await judge(stage, self._scenario, cell)
                result, passed = _result(stage, cell, trouble, verdict), lab.kills()
                starved = lab.was_starved
        if not result.faults:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return passed, result, starved

    def _place(self, folder: Path, database: str, longer: float) -> Place:
        scenario = self._scenario
        return Place(
            folder=folder,
            database=database,
            town=self._ground.town,
            environment={**scenario.environment, **self._ground.environment},
            lease=self._lease() * longer * scenario.rate,
            form=self._ground.form,
            rate=scenario.rate,
            webhook=scenario.webhook,
        )

    def _lease(self) -> float:
        if self._ground.form != "alone":
            return PAIR_LEASE
        return LEASE if self._scenario.rate == 1.0 else QUICK_LEASE

    async def _played(self, stage: Stage) -> list[str]:
        try:
            async with asyncio.timeout(CELL_SECONDS):
                await self._scenario.play(stage)
                await stage.lab.settled(stage.patience)
                await stage.lab.down()
        except (AssertionError, TimeoutError) as error:
            await stage.lab.autopsy()
            return [f"not finished: {error!r}"[-LOG_TAIL:]]
        return []


def _result(stage: Stage, cell: Cell, trouble: list[str], verdict: Verdict) -> Result:
    lab = stage.lab
    found = [*trouble, *verdict.faults]
    return Result(
        cell=cell,
        faults=[*found, lab.log()[-LOG_TAIL:]] if found else [],
        killed=lab.struck,
        may_double=bool(verdict.allowed),
        doubled=bool(verdict.extra),
        asked=len(lab.model.requests),
        looked=sum(line.startswith("look ") for line in lab.effects),
    )
