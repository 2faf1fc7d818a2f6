"""A short storm; `make chaos` runs the long one. Real processes and SDK, a real PostgreSQL."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from storage.migrate import migrate
from tests.harness.chaos.fleet import Site
from tests.harness.chaos.page import as_markdown
from tests.harness.chaos.run import Outcome, Plan, chaos
from tests.harness.chaos.storm import DECK, DEPLOY, FREEZE, IMMEDIATE, KILL, KILL_ALL, Weather
from tests.harness.lab import Zygote, zygote
from tests.planted.kills import KillBug, plant
from tests.planted.storms import STORM_BUGS
from tests.postgres import PostgresServer, running_postgres

LEASE = 2.0
BLOWS = 8
LONG = (3.0, 5.0)
JUDGED = r"^p\d\d: |messages were sent"
"""What is said of a person, and not of a machine that was too busy to get well in time."""
SHORT = (FREEZE, KILL, DEPLOY, IMMEDIATE)
PLAN = Plan(
    people=8,
    calm=1.0,
    tempo=2.0,
    weather=Weather(
        deck=SHORT, shuffled=False, seconds=0.0, pauses=(0.2, 1.0), doubled=0.0, settled=0.0
    ),
)
pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


@pytest.fixture
async def forks() -> AsyncIterator[Zygote]:
    async with zygote() as ready:
        yield ready


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """For this test alone, which restarts it."""
    with running_postgres() as own:
        yield own


async def storm(forks: Zygote, folder: Path, server: PostgresServer, plan: Plan) -> Outcome:
    url = server.url(await server.new_database())
    await migrate(url)
    return await chaos(forks, Site(folder=folder, server=server, url=url, lease=LEASE), plan)


async def test_two_replicas_in_a_storm_lose_nothing_and_say_nothing_twice(
    forks: Zygote, tmp_path: Path, server: PostgresServer
) -> None:
    outcome = await storm(forks, tmp_path, server, PLAN)
    assert not outcome.faults, as_markdown(outcome, [])
    assert [span.kind for span in outcome.spans] == list(SHORT)
    assert sum(account.answered for account in outcome.accounts) > PLAN.people
    assert outcome.charges


@pytest.mark.matrix
@pytest.mark.parametrize("bug", STORM_BUGS, ids=lambda bug: bug.name)
async def test_a_planted_bug_turns_a_storm_red(
    bug: KillBug, tmp_path: Path, server: PostgresServer
) -> None:
    """By the blow that it names, or else by kills of all."""
    code, folder = tmp_path / "code", tmp_path / "here"
    for path in (code, folder):
        path.mkdir()
    plant(bug, code)
    blow = bug.scenario if bug.scenario in DECK else KILL_ALL
    weather = replace(
        PLAN.weather, deck=(blow,) * BLOWS, within=60.0, frozen=LONG, stops_when_sick=True
    )
    async with zygote(code) as forks:
        outcome = await storm(forks, folder, server, replace(PLAN, people=20, weather=weather))
    assert any(re.search(bug.says or JUDGED, fault) for fault in outcome.faults), outcome.faults
