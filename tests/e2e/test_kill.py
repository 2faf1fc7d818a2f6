"""SIGKILL in the middle of conversations; their users notice nothing.

The genuine Telegram SDK and litellm against stand-ins, real processes, real databases. This is a
spread of the cells; `make matrix` runs all of them, and writes docs/kill-matrix.md.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.harness.blocks import Block, Database, Outcome
from tests.harness.lab import ROOT, zygote
from tests.harness.scenarios import SCENARIOS
from tests.harness.worker import BASE, Order, Worker
from tests.planted.kills import KILL_BUGS, KillBug, plant
from tests.postgres import PostgresServer

CELLS: dict[Database, int] = {"sqlite": 2, "postgresql": 1}
"""Of each scenario."""
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    async with zygote(ROOT) as forks:
        yield Worker(forks)


async def spread(
    worker: Worker, database: Database, folder: Path, pg_port: int = 0
) -> Sequence[Outcome]:
    def order(number: int, name: str) -> Order:
        block = Block(scenario=name, database=database)
        place = str(folder / str(number))
        return Order(block=block, folder=place, pg_port=pg_port, only=CELLS[database])

    orders = [order(number, scenario.name) for number, scenario in enumerate(SCENARIOS)]
    return await asyncio.gather(*map(worker.run, orders))


def complaints(outcomes: Sequence[Outcome]) -> Mapping[str, object]:
    trouble = {str(outcome.block): outcome.trouble for outcome in outcomes if outcome.trouble}
    red = {f"{o.block}: {result.cell}": result.faults for o in outcomes for result in o.red}
    return trouble | red


async def test_a_spread_of_kills_on_sqlite(worker: Worker, tmp_path: Path) -> None:
    outcomes = await spread(worker, "sqlite", tmp_path)
    assert complaints(outcomes) == {}
    killed = [result.killed for outcome in outcomes for result in outcome.results]
    assert sum(map(bool, killed)) > len(SCENARIOS)


@pytest.mark.postgres
async def test_a_spread_of_kills_on_postgresql(
    worker: Worker, tmp_path: Path, postgres_server: PostgresServer, postgres_template: str
) -> None:
    await postgres_server.execute(f'CREATE DATABASE "{BASE}" TEMPLATE "{postgres_template}"')
    outcomes = await spread(worker, "postgresql", tmp_path, postgres_server.port)
    assert complaints(outcomes) == {}
    killed = [result.killed for outcome in outcomes for result in outcome.results]
    assert sum(map(bool, killed)) > len(SCENARIOS) // 2


@pytest.mark.parametrize("bug", KILL_BUGS, ids=lambda bug: bug.name)
def test_what_is_planted_in_the_matrix_still_has_its_place(bug: KillBug, tmp_path: Path) -> None:
    plant(bug, tmp_path / "code")
