"""SIGKILL at every write and outside call of a whole conversation; its user notices nothing.

The genuine Telegram SDK and litellm against stand-ins, real processes, real databases. `make test`
runs a spread of the cells, `make matrix` all of them.
"""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness.lab import NO_KILL, Cell, Lab, Zygote, zygote
from tests.harness.matrix import Result, count, run_cells
from tests.harness.talk import Talk, faults_of
from tests.postgres import PostgresServer

SAMPLE = 10
SEED = 20261130
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
async def forks() -> AsyncIterator[Zygote]:
    async with zygote() as ready:
        yield ready


def sqlite_urls(folder: Path, cells: list[Cell]) -> list[str]:
    return [f"sqlite:///{folder}/cell{number}/stillhere.db" for number in range(len(cells))]


async def postgres_urls(server: PostgresServer, cells: list[Cell]) -> list[str]:
    return [server.url(await server.new_database()) for _ in cells]


def spread(cells: list[Cell]) -> list[Cell]:
    return random.Random(SEED).sample(cells, SAMPLE)


def complaints(results: list[Result]) -> dict[str, list[str]]:
    return {str(result.cell): result.faults for result in results if result.faults}


async def test_a_conversation_with_a_stop_in_the_middle(forks: Zygote, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/stillhere.db"
    async with Lab(forks, tmp_path, database, NO_KILL) as lab:
        talk = Talk(lab)
        await talk.run()
        assert faults_of(talk, NO_KILL) == []
        assert talk.exit_codes == [0, 0]
        assert talk.stop_seconds < 1.0
        previews = lab.telegram.calls_of("editMessageText")
        assert previews, "the answers were not streamed"


async def test_a_sample_of_kills_on_sqlite(forks: Zygote, tmp_path: Path) -> None:
    cells = spread(await count(forks, tmp_path / "count", f"sqlite:///{tmp_path}/count.db"))
    results = await run_cells(forks, tmp_path, sqlite_urls(tmp_path, cells), cells)
    assert complaints(results) == {}
    assert sum(result.killed for result in results) >= SAMPLE // 2


@pytest.mark.postgres
async def test_a_sample_of_kills_on_postgresql(
    forks: Zygote, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    database = postgres_server.url(await postgres_server.new_database())
    cells = spread(await count(forks, tmp_path / "count", database))
    results = await run_cells(forks, tmp_path, await postgres_urls(postgres_server, cells), cells)
    assert complaints(results) == {}
    assert sum(result.killed for result in results) >= SAMPLE // 2


@pytest.mark.matrix
@pytest.mark.timeout(5400)
async def test_every_kill_on_sqlite(forks: Zygote, tmp_path: Path) -> None:
    cells = await count(forks, tmp_path / "count", f"sqlite:///{tmp_path}/count.db")
    results = await run_cells(forks, tmp_path, sqlite_urls(tmp_path, cells), cells)
    assert complaints(results) == {}


@pytest.mark.matrix
@pytest.mark.postgres
@pytest.mark.timeout(5400)
async def test_every_kill_on_postgresql(
    forks: Zygote, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    database = postgres_server.url(await postgres_server.new_database())
    cells = await count(forks, tmp_path / "count", database)
    results = await run_cells(forks, tmp_path, await postgres_urls(postgres_server, cells), cells)
    assert complaints(results) == {}
