"""Everything around the service goes wrong once while it lives; its user gets an answer or is told.

`make test` runs a spread of the cells, `make matrix` all of them.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.migrate import migrate
from tests.harness.database_faults import POSTGRES_FAULTS, SQLITE_FAULTS
from tests.harness.database_matrix import DatabaseRunner, postgres_sites, sqlite_sites
from tests.harness.fault_matrix import FaultRunner
from tests.harness.faults import ERRANDS, MODEL, NEW_MESSAGE, POLL, Errand, FaultResult
from tests.harness.lab import Zygote, zygote

SAMPLE = {
    (POLL, 2, "stored, answer lost"): "answered",
    (MODEL, 2, "500 until it gives up"): "said to have failed",
    (MODEL, 2, "hang in the stream"): "answered",
    (NEW_MESSAGE, 3, "refused"): "answered",
    (NEW_MESSAGE, 3, "429, a long wait"): "answered",
    (NEW_MESSAGE, 3, "stored, answer lost"): "doubled",
}
SQLITE_SAMPLE = {("disk full", 1), ("I/O error", 6), ("locked", 10)}
POSTGRES_SAMPLE = {("PostgreSQL restarted", 5)}
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
async def forks() -> AsyncIterator[Zygote]:
    async with zygote() as ready:
        yield ready


@pytest.fixture
async def base(tmp_path: Path) -> Path:
    file = tmp_path / "base.db"
    await migrate(f"sqlite:///{file}")
    return file


def named(name: str) -> Errand:
    return next(one for one in ERRANDS if one.name == name)


def complaints(results: list[FaultResult]) -> dict[str, list[str]]:
    return {f"{r.fault}, at {r.call}": r.faults for r in results if r.faults}


async def test_a_sample_of_what_goes_wrong_outside(
    forks: Zygote, tmp_path: Path, base: Path
) -> None:
    runner = FaultRunner(forks, tmp_path, base, named("plain answer"))
    cells = [c for c in await runner.cells() if (c.call, c.number, c.way.name) in SAMPLE]
    results = await runner.run(cells)
    assert complaints(results) == {}
    assert [r.outcome for r in results] == [SAMPLE[c.call, c.number, c.way.name] for c in cells]
    assert len(results) == len(SAMPLE)


async def test_a_sample_of_what_goes_wrong_with_the_disk(forks: Zygote, tmp_path: Path) -> None:
    async with sqlite_sites(tmp_path / "disks") as (sites, why_not):
        _skip_if(why_not)
        runner = DatabaseRunner(forks, tmp_path, named("two tools"), sites)
        cells = [
            cell
            for cell in await runner.cells(SQLITE_FAULTS)
            if (cell.fault.name, cell.number) in SQLITE_SAMPLE
        ]
        results = await runner.run(cells)
    assert complaints(results) == {}
    assert len(results) == len(SQLITE_SAMPLE)


@pytest.mark.postgres
async def test_a_restart_of_postgresql_in_mid_turn(forks: Zygote, tmp_path: Path) -> None:
    with postgres_sites(1) as sites:
        runner = DatabaseRunner(forks, tmp_path, named("two tools"), sites)
        cells = [
            cell
            for cell in await runner.cells(POSTGRES_FAULTS)
            if (cell.fault.name, cell.number) in POSTGRES_SAMPLE
        ]
        results = await runner.run(cells)
    assert complaints(results) == {}
    assert len(results) == len(POSTGRES_SAMPLE)


def _skip_if(why: str) -> None:
    if why:
        pytest.skip(why)
