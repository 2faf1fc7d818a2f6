"""What comes live waits for what was said before it, but not for long."""

import pytest

from tests.bots.platforms.slack.kit import socketed
from tests.bots.platforms.slack.life import HISTORY, Held, Life
from tests.standins.faults import SERVER_ERROR
from tests.standins.slack import SlackStandIn
from tests.standins.slack_user import User


@pytest.fixture
def life(slack: SlackStandIn) -> Life:
    return Life(slack)


async def test_what_was_missed_is_taken_before_what_comes_live(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    await life.lost(lambda: ada.says("two"))
    page = Held(life.slack, HISTORY)
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await page.is_one()
        await life.lost(lambda: ada.says("three"))
        await life.lost(lambda: ada.says("four"))
        page.let_go()
        await bench.takes(4)
    assert life.inbox.texts == ["one", "two", "three", "four"]


async def test_a_history_that_does_not_come_is_not_waited_for(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    await life.lost(lambda: ada.says("two"))
    page = Held(life.slack, HISTORY)
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await page.is_one()
        ada.says("three")
        await bench.takes(2)
        page.let_go()
        await bench.takes(3)
    assert life.inbox.texts == ["one", "three", "two"]


async def test_a_history_that_is_read_later_is_not_waited_for(
    life: Life, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bots.platforms.slack.intake.HISTORY_SECONDS", 1000.0)
    await life.takes_first(lambda: ada.says("one"))
    life.slack.faults.always(HISTORY, SERVER_ERROR)
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await life.slack.wait_for(lambda: bench.pauses)
        ada.says("two")
        await bench.takes(2)
