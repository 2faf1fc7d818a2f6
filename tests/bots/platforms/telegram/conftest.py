from collections.abc import AsyncIterator

import pytest

from tests.bots.platforms.telegram.kit import Bench, polling
from tests.standins.telegram import TelegramStandIn
from tests.standins.telegram_user import User

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *(name.lower() for name in PROXIES)):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def tg() -> AsyncIterator[TelegramStandIn]:
    async with TelegramStandIn() as tg:
        yield tg


@pytest.fixture
async def bench(tg: TelegramStandIn) -> AsyncIterator[Bench]:
    """Polling, and well."""
    async with polling(tg) as bench:
        await bench.is_well()
        yield bench


@pytest.fixture
def ada(tg: TelegramStandIn) -> User:
    return tg.user(7, "Ada")
