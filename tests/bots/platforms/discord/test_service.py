"""The whole service behind Discord, as its user sees it; nothing is faked but Discord, the model
and the clock's pauses."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest

from bots.app import Service
from bots.ground import Ground
from bots.platforms.discord import PLATFORM
from bots.settings import Settings
from core.domain.ledger import Ledger
from core.domain.messages import ModelFailure, ModelRequest, UserMessage
from core.models.scripted import ScriptedModel
from storage.memory import MemoryStore
from tests.bots.platforms.discord.kit import CHANNEL, FOREIGN, THREAD
from tests.bots.platforms.telegram.kit import QuickClock
from tests.standins.discord import DiscordStandIn
from tests.standins.discord_user import User
from tests.standins.faults import SERVER_ERROR, Reset, StoreThenCut, too_many

LINES = 60


def echo(request: ModelRequest) -> str:
    told = [message.text for message in request.messages if isinstance(message, UserMessage)]
    return f"re: {told[-1]}"


class Town:
    """What outlives a process. The model echoes, as many times as it is ever asked here."""

    def __init__(self, place: DiscordStandIn) -> None:
        self.place = place
        self.store = MemoryStore()
        self.clock = QuickClock()
        self.script = ScriptedModel(*[echo] * LINES)

    async def outcomes(self) -> dict[str, int]:
        ledger = (await self.store.ledger()).get("discord", Ledger())
        assert ledger.balanced, ledger
        return {name: n for name, n in ledger.numbers.items() if n and name != "accepted"}

    @asynccontextmanager
    async def lives(self) -> AsyncGenerator[Service]:
        ground = Ground(
            settings=Settings(allowed_users=("*",), drain_seconds=1),
            environment={
                "DISCORD_BOT_TOKEN": self.place.token,
                "DISCORD_API_URL": self.place.api_url,
                "DISCORD_GATEWAY_URL": self.place.gateway_url,
            },
            store=self.store,
            platforms={"discord": PLATFORM},
            clock=self.clock,
            model=self.script,
            tools={},
        )
        service = Service(ground)
        await service.start()
        try:
            await self.place.wait_for(lambda: service.adapters["discord"].health().ok)
            yield service
        finally:
            await service.stop()


@pytest.fixture
def town(place: DiscordStandIn) -> Town:
    return Town(place)


async def answered(place: DiscordStandIn, seen: Callable[[], list[str]], *texts: str) -> None:
    """All of them, each once, in order, and nothing else."""
    await place.wait_for(lambda: len(seen()) >= len(texts) and texts[-1] in seen())
    assert seen() == list(texts)


async def test_what_was_said_while_it_was_down_is_answered_in_order(
    town: Town, place: DiscordStandIn, ada: User
) -> None:
    async with town.lives():
        ada.says("one")
        await answered(place, ada.bot_texts, "re: one")
    ada.says("two")
    async with town.lives():
        await answered(place, ada.bot_texts, "re: one", "re: two")
    assert await town.outcomes() == {"answered": 2}


async def test_what_comes_again_is_answered_once(
    town: Town, place: DiscordStandIn, ada: User
) -> None:
    async with town.lives():
        said = ada.says("one")
        place.redeliver(said)
        await answered(place, ada.bot_texts, "re: one")
        place.redeliver(said)
        ada.says("two")
        await answered(place, ada.bot_texts, "re: one", "re: two")
    place.redeliver(said)
    async with town.lives():
        ada.says("three")
        await answered(place, ada.bot_texts, "re: one", "re: two", "re: three")
    assert len(town.script.requests) == 3


async def test_two_people_two_places_and_nothing_crosses(
    town: Town, place: DiscordStandIn, ada: User
) -> None:
    bob = place.user(8, "Bob")
    async with town.lives():
        ada.says("secret of Ada")
        bob.says("secret of Bob")
        ada.says_in(CHANNEL, "in the channel", mention=True)
        bob.says_in(THREAD, "in the thread", mention=True)
        await answered(place, ada.bot_texts, "re: secret of Ada")
        await answered(place, bob.bot_texts, "re: secret of Bob")
        await place.wait_for(lambda: bool(ada.bot_texts(CHANNEL) and ada.bot_texts(THREAD)))
    assert "in the channel" in ada.bot_texts(CHANNEL)[0]
    assert "in the thread" in ada.bot_texts(THREAD)[0]
    assert len(await town.store.streams()) == 4


async def test_dropped_sockets_429s_and_500s_cost_no_answer_and_double_none(
    town: Town, place: DiscordStandIn, ada: User
) -> None:
    said = [f"number {number}" for number in range(6)]
    async with town.lives():
        place.faults.next(
            "create_message", too_many(1), SERVER_ERROR, Reset(), StoreThenCut(), too_many(1)
        )
        place.faults.next("edit_message", StoreThenCut(), too_many(1))
        for number, text in enumerate(said):
            ada.says(text)
            if number == 2:
                place.gateway.aborts()
            await place.wait_for(lambda n=number: len(ada.bot_texts()) > n, timeout=30)
    assert ada.bot_texts() == [f"re: {text}" for text in said]
    assert await town.outcomes() == {"answered": 6}


async def test_a_command_works_during_a_turn_and_without_being_there(
    town: Town, place: DiscordStandIn, ada: User
) -> None:
    town.script.hold()
    async with town.lives():
        ada.says("think hard")
        await place.wait_for(lambda: bool(town.script.requests))
        made = ada.commands("stop", channel_id=FOREIGN)
        await place.wait_for(lambda: made.answer is not None)
        await place.wait_for(lambda: any("topped" in text for text in ada.bot_texts()))
        town.script.release()


async def test_a_failure_offers_a_button_that_tries_again(
    town: Town, place: DiscordStandIn, ada: User
) -> None:
    town.script = ScriptedModel(ModelFailure(kind="never", detail="no"), echo)
    async with town.lives():
        ada.says("hello")
        await place.wait_for(lambda: bool(ada.chat[-1].buttons))
        ada.clicks(ada.chat[-1], "Try again")
        await place.wait_for(lambda: "re: hello" in ada.bot_texts())


async def test_a_very_long_answer_is_there_as_a_whole(
    town: Town, place: DiscordStandIn, ada: User
) -> None:
    long = "\n\n".join(f"Paragraph {number} 日本語 👩‍👩‍👧. " * 9 for number in range(100))
    town.script = ScriptedModel(long, long[:9000])
    async with town.lives():
        ada.says("all of it")
        await place.wait_for(lambda: any(message.files for message in ada.chat))
        ada.says("most of it")
        await place.wait_for(lambda: len(ada.bot_texts()) > 3)
        await asyncio.sleep(0)
    first, *others = [message for message in ada.chat if message.from_bot]
    assert first.whole == long
    assert len(others) > 3
    assert not any(message.files for message in others)
