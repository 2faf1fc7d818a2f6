from collections.abc import AsyncIterator

import pytest

from tests.bots.platforms.slack.kit import Bench, socketed
from tests.standins.slack import SlackStandIn
from tests.standins.slack_user import User

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *(name.lower() for name in PROXIES)):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def slack() -> AsyncIterator[SlackStandIn]:
    async with SlackStandIn() as slack:
        slack.channel("C1")
        yield slack


@pytest.fixture
async def bench(slack: SlackStandIn) -> AsyncIterator[Bench]:
    """In Socket Mode, and well."""
    async with socketed(slack) as bench:
        await bench.is_well()
        yield bench


@pytest.fixture
def ada(slack: SlackStandIn) -> User:
    return slack.user("U7", "Ada")
