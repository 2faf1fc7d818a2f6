from collections.abc import AsyncIterator

import pytest

from tests.bots.platforms.discord.kit import CHANNEL, FOREIGN, THREAD, Bench, online
from tests.standins.discord import DiscordStandIn
from tests.standins.discord_user import User


@pytest.fixture
async def place() -> AsyncIterator[DiscordStandIn]:
    async with DiscordStandIn() as place:
        place.channel(CHANNEL)
        place.thread(THREAD, CHANNEL)
        place.foreign_channel(FOREIGN)
        yield place


@pytest.fixture
def ada(place: DiscordStandIn) -> User:
    return place.user(7, "Ada")


@pytest.fixture
async def bench(place: DiscordStandIn) -> AsyncIterator[Bench]:
    """Connected, and well."""
    async with online(place) as bench:
        yield bench
