"""Everything around the service goes wrong once while it lives; its user gets an answer or is told.

`make test` runs a spread of the cells, `make matrix` all of them.
"""

import shutil
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from storage.migrate import migrate
from tests.harness.database_faults import POSTGRES_FAULTS, SQLITE_FAULTS
from tests.harness.database_matrix import (
    DatabaseCell,
    DatabaseRunner,
    postgres_sites,
    sqlite_sites,
)
from tests.harness.fault_matrix import FaultRunner
from tests.harness.faults import (
    ANY_CALL,
    ERRANDS,
    MODEL,
    MODEL_CALL,
    NEW_MESSAGE,
    POLL,
    Errand,
    FaultCell,
    FaultResult,
    Outcome,
)
from tests.harness.lab import Zygote, zygote
from tests.harness.matrix import Ground

SAMPLE: tuple[tuple[str, int, str, Outcome], ...] = (
    (POLL, 2, "stored, answer lost", "answered"),
    (MODEL, 2, "500 until it gives up", "said to have failed"),
    (MODEL, 2, "hang in the stream", "answered"),
    (NEW_MESSAGE, 3, "refused", "answered"),
    (NEW_MESSAGE, 3, "stored, answer lost", "doubled"),
)
DISK_SAMPLE = (("disk full", 1), ("I/O error", 6))
SERVER_SAMPLE = (("PostgreSQL restarted", 5),)
WAYS = {way.name: way for way in (*ANY_CALL, *MODEL_CALL)}
FAULTS = {fault.name: fault for fault in (*SQLITE_FAULTS, *POSTGRES_FAULTS)}
pytestmark = pytest.mark.timeout(600)
everything = pytest.mark.parametrize("errand", ERRANDS, ids=lambda errand: errand.name)


@pytest.fixture
async def forks() -> AsyncIterator[Zygote]:
    async with zygote() as ready:
        yield ready


@pytest.fixture
async def ground(forks: Zygote, tmp_path: Path) -> Ground:
    base = tmp_path / "base.db"
    await migrate(f"sqlite:///{base}")

    async def database(folder: Path) -> str:
        return f"sqlite:///{shutil.copy(base, folder / 'stillhere.db')}"

    return Ground(zygote=forks, folder=tmp_path, database=database)


def named(name: str) -> Errand:
    return next(one for one in ERRANDS if one.name == name)


def complaints(results: list[FaultResult]) -> dict[str, list[str]]:
    return {f"{r.fault}, at {r.call}": r.faults for r in results if r.faults}


def cells(sample: Iterable[tuple[str, int]]) -> list[DatabaseCell]:
    return [DatabaseCell(number=n, write="any", fault=FAULTS[name]) for name, n in sample]


async def test_a_sample_of_what_goes_wrong_outside(ground: Ground) -> None:
    runner = FaultRunner(ground, named("plain answer"))
    sample = [FaultCell(number=n, call=call, way=WAYS[way]) for call, n, way, _ in SAMPLE]
    results = await runner.run(sample)
    assert complaints(results) == {}
    assert [result.outcome for result in results] == [outcome for *_, outcome in SAMPLE]


async def test_a_sample_of_what_goes_wrong_with_the_disk(forks: Zygote, tmp_path: Path) -> None:
    async with sqlite_sites(tmp_path / "disks") as (sites, why_not):
        _skip_if(why_not)
        runner = DatabaseRunner(forks, tmp_path, named("two tools"), sites)
        results = await runner.run(cells(DISK_SAMPLE))
    assert complaints(results) == {}
    assert [result.outcome for result in results] == ["answered"] * len(DISK_SAMPLE)


@pytest.mark.postgres
async def test_a_restart_of_postgresql_in_mid_turn(forks: Zygote, tmp_path: Path) -> None:
    with postgres_sites(1) as sites:
        runner = DatabaseRunner(forks, tmp_path, named("two tools"), sites)
        results = await runner.run(cells(SERVER_SAMPLE))
    assert complaints(results) == {}
    assert [result.outcome for result in results] == ["answered"]


@pytest.mark.matrix
@pytest.mark.timeout(5400)
@everything
async def test_every_fault_of_every_outside_call(ground: Ground, errand: Errand) -> None:
    runner = FaultRunner(ground, errand)
    assert complaints(await runner.run(await runner.cells())) == {}


@pytest.mark.matrix
@pytest.mark.timeout(5400)
@everything
async def test_every_fault_of_the_disk(forks: Zygote, tmp_path: Path, errand: Errand) -> None:
    async with sqlite_sites(tmp_path / "disks") as (sites, why_not):
        _skip_if(why_not)
        runner = DatabaseRunner(forks, tmp_path, errand, sites)
        assert complaints(await runner.run(await runner.cells(SQLITE_FAULTS))) == {}


@pytest.mark.matrix
@pytest.mark.postgres
@pytest.mark.timeout(5400)
@everything
async def test_every_fault_of_postgresql(forks: Zygote, tmp_path: Path, errand: Errand) -> None:
    with postgres_sites() as sites:
        runner = DatabaseRunner(forks, tmp_path, errand, sites)
        assert complaints(await runner.run(await runner.cells(POSTGRES_FAULTS))) == {}


def _skip_if(why: str) -> None:
    if why:
        pytest.skip(why)
