"""A short storm; `make chaos` runs the long one. Real processes and SDK, a real PostgreSQL."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from storage.migrate import migrate
from tests.harness.chaos.fleet import Site
from tests.harness.chaos.page import as_markdown
from tests.harness.chaos.run import Plan, chaos
from tests.harness.chaos.storm import DEPLOY, FREEZE, IMMEDIATE, KILL, Weather
from tests.harness.lab import Zygote, zygote
from tests.postgres import PostgresServer, running_postgres

LEASE = 2.0
DECK = (FREEZE, KILL, DEPLOY, IMMEDIATE)
PLAN = Plan(
    people=8,
    calm=1.0,
    tempo=2.0,
    weather=Weather(deck=DECK, shuffled=False, seconds=0.0, pauses=(0.2, 1.0), doubled=0.0),
)
pytestmark = [pytest.mark.timeout(400), pytest.mark.slow]


@pytest.fixture
async def forks() -> AsyncIterator[Zygote]:
    async with zygote() as ready:
        yield ready


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """For this test alone, which restarts it."""
    with running_postgres() as own:
        yield own


async def test_two_replicas_in_a_storm_lose_nothing_and_say_nothing_twice(
    forks: Zygote, tmp_path: Path, server: PostgresServer
) -> None:
    url = server.url(await server.new_database())
    await migrate(url)
    outcome = await chaos(forks, Site(folder=tmp_path, server=server, url=url, lease=LEASE), PLAN)
    assert not outcome.faults, as_markdown(outcome, [])
    assert [span.kind for span in outcome.spans] == list(DECK)
    assert sum(account.answered for account in outcome.accounts) > PLAN.people
    assert outcome.charges
