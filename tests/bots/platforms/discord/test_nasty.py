"""Nasty Markdown through the genuine SDK: every part is accepted, and no word is lost."""

import re
from collections.abc import AsyncIterator

import pytest

from core.domain.keys import Address
from core.domain.messages import OutboxMessage
from tests.bots.platforms.discord.kit import Bench
from tests.bots.platforms.telegram.test_nasty import NASTY, WORDS
from tests.standins.discord import DiscordStandIn
from tests.standins.discord_methods import utf16_length
from tests.standins.discord_user import User


@pytest.fixture
async def bench(place: DiscordStandIn, ada: User) -> AsyncIterator[Bench]:
    ada.says("hello")
    bench = Bench(place)
    yield bench
    await bench.adapter.close()


@pytest.mark.parametrize("source", NASTY.values(), ids=NASTY.keys())
async def test_discord_takes_every_part(bench: Bench, ada: User, source: str) -> None:
    channel = bench.adapter.channel
    here = Address(platform="discord", account="123456", chat=str(ada.dm))
    for number, part in enumerate(channel.render(source)):
        row = OutboxMessage(id=f"k@{number}", key="k", address=here, kind="answer", part=part)
        await channel.send(row)
    refused = [c.outcome for c in bench.place.calls_of("create_message") if c.outcome != "ok"]
    assert refused == []
    assert all(utf16_length(text) <= 2000 for text in ada.bot_texts())
    read = "\n".join(message.whole for message in ada.chat if message.from_bot)
    seen = "".join(re.sub(r"(?m)^```\w*$|\\", "", read).split())
    assert [word for word in WORDS[source] if word not in seen] == []
