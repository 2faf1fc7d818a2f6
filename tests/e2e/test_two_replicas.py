"""Two replicas share a database and a bot; one is killed, or stands still past its lease. Its users
notice nothing.

Two cells; `make matrix` runs all of them, and writes docs/kill-matrix.md.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.harness.kills import Cell, Form, Kill
from tests.harness.lab import ROOT, zygote
from tests.harness.matrix import Ground, Result, Runner
from tests.harness.stage import Scenario, Stage, Wishes
from tests.harness.worker import BASE, postgres_databases
from tests.planted.kills import KillBug, plant
from tests.planted.pairs import PAIR_BUGS
from tests.postgres import PostgresServer

TAKEN = Kill(life=1, kind="write", number=1, after=True, what="commit")
"""The first message is taken, and nothing of its turn is done."""


async def one_answer(stage: Stage) -> None:
    stage.says("hello")
    await stage.read("hello")


ONE_ANSWER = Scenario(
    name="one answer", about="a message", play=one_answer, wishes=Wishes(answered=("hello",))
)
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
async def ground(
    tmp_path: Path, postgres_server: PostgresServer, postgres_template: str
) -> AsyncIterator[Ground]:
    await postgres_server.execute(f'DROP DATABASE IF EXISTS "{BASE}"')
    await postgres_server.execute(f'CREATE DATABASE "{BASE}" TEMPLATE "{postgres_template}"')
    async with zygote(ROOT) as forks:
        yield Ground(
            zygote=forks,
            folder=tmp_path,
            database=postgres_databases(postgres_server, iter(range(100))),
            places=asyncio.Semaphore(2),
        )
    await postgres_server.drop_database(BASE)


async def result(ground: Ground, form: Form) -> Result:
    here = replace(ground, folder=ground.folder / form.replace(" ", "-"), form=form)
    (found,) = await Runner(here, ONE_ANSWER).run([Cell((TAKEN,))])
    return found


@pytest.mark.postgres
async def test_the_other_takes_over_from_one_that_is_killed_or_stands_still(
    ground: Ground,
) -> None:
    killed, paused = await asyncio.gather(
        result(ground, "two replicas"), result(ground, "one paused")
    )

    assert killed.faults == []
    assert paused.faults == []
    assert (killed.killed, paused.killed) == (1, 1)


@pytest.mark.parametrize("bug", PAIR_BUGS, ids=lambda bug: bug.name)
def test_what_is_planted_in_the_matrix_still_has_its_place(bug: KillBug, tmp_path: Path) -> None:
    plant(bug, tmp_path / "code")
