"""A short soak; `make soak` runs the long one. Real processes, the real SDK, random kills."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.migrate import migrate
from tests.harness.lab import Place, Zygote, zygote
from tests.harness.soak.page import as_markdown
from tests.harness.soak.run import Plan, soak

PLAN = Plan(people=8, seconds=6.0, kills=2, calm=2.0, pause=(0.6, 2.5), tempo=2.0)
RATE = 12.0
"""What waits a minute before its last attempt would hold up the end."""
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
async def forks() -> AsyncIterator[Zygote]:
    async with zygote() as ready:
        yield ready


async def test_nothing_is_lost_and_nothing_comes_twice(
    forks: Zygote, tmp_path: Path, database_url: str
) -> None:
    await migrate(database_url)
    place = Place(folder=tmp_path, database=database_url, lease=2.0 * RATE, rate=RATE)
    outcome = await soak(forks, place, PLAN)
    assert not outcome.faults, as_markdown(outcome, [])
    assert outcome.kills >= PLAN.kills
    assert sum(account.answered for account in outcome.accounts) > PLAN.people
    assert outcome.charges
