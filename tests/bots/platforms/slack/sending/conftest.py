from collections.abc import AsyncIterator

import pytest

from bots.platforms.slack.channel import SlackChannel
from tests.bots.platforms.slack.kit import Bench
from tests.standins.slack import SlackStandIn
from tests.standins.slack_user import User


@pytest.fixture
async def bench(slack: SlackStandIn, ada: User) -> AsyncIterator[Bench]:
    """Not started: sending needs no intake."""
    bench = Bench(slack)
    slack.events.subscribed = frozenset()
    ada.says("hello")
    slack.events.subscribed = None
    yield bench
    await bench.adapter.close()


@pytest.fixture
def channel(bench: Bench) -> SlackChannel:
    return bench.channel
