"""Everything around the service goes wrong once while it lives; its user gets an answer or is told.

`make test` runs a spread of the cells, `make matrix` all of them.
"""

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


def cells(sample: Iterable[tuple[str, int]]) -> list[DatabaseCell]:
    return [DatabaseCell(number=n, write="any", fault=FAULTS[name]) for name, n in sample]


async def test_a_sample_of_what_goes_wrong_outside(
    forks: Zygote, tmp_path: Path, base: Path
) -> None:
    runner = FaultRunner(forks, tmp_path, base, named("plain answer"))
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


def _skip_if(why: str) -> None:
    if why:
        pytest.skip(why)
