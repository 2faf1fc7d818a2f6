"""What was missed is read whatever Discord's history does, and one channel holds up no other."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from bots.platforms.discord import history
from storage.memory import MemoryStore
from tests.bots.platforms.discord.kit import CHANNEL, Bench, online
from tests.standins.discord import DiscordStandIn
from tests.standins.discord_chats import discord_error
from tests.standins.discord_user import User
from tests.standins.faults import BAD_GATEWAY, GARBAGE, SERVER_ERROR, Fault, Hang, Raw, Refuse, Slow

JSON = "application/json"
SPOILED: dict[str, Any] = {
    "attachments": [{"id": "1", "filename": "a.png"}],
    "message_snapshots": [{}],
    "sticker_items": [{"id": "1"}],
    "embeds": None,
    "reactions": [{}],
    "author": None,
}


@pytest.fixture
async def store(place: DiscordStandIn, ada: User) -> MemoryStore:
    """Of a process that heard Ada, in private and in the channel, and is down now."""
    store = MemoryStore()
    async with online(place, store) as first:
        ada.says("hello")
        ada.says_in(CHANNEL, "hello there", mention=True)
        await first.takes(2)
    return store


async def test_one_sick_channel_holds_up_no_other_and_itself_not_for_ever(
    place: DiscordStandIn, store: MemoryStore, ada: User
) -> None:
    ada.says_in(CHANNEL, "missed there", mention=True)
    ada.says("missed")
    place.channel(CHANNEL).refusal = SERVER_ERROR
    async with online(place, store) as second:
        ada.says_in(CHANNEL, "now there", mention=True)
        ada.says("now")
        await place.wait_for(lambda: {"now", "now there"} <= set(second.inbox.texts))
        assert second.adapter.health().ok
    of_dm = [text for text in second.inbox.texts if "there" not in text]
    assert list(dict.fromkeys(of_dm)) == ["missed", "now"]
    assert "missed there" not in second.inbox.texts
    place.channel(CHANNEL).refusal = None
    async with online(place, store) as third:
        await place.wait_for(lambda: "missed there" in third.inbox.texts)


async def test_the_history_quotes_as_what_comes_live_does(
    place: DiscordStandIn, store: MemoryStore, ada: User
) -> None:
    first = ada.says("what is this?")
    ada.says("missed", reply_to=first.id)
    async with online(place, store) as second:
        await second.takes(2)
        ada.says("live", reply_to=first.id)
        taken = await second.takes(3)
    assert [(one.text, one.quote) for one in taken] == [
        ("what is this?", ""),
        ("missed", "what is this?"),
        ("live", "what is this?"),
    ]


async def test_a_sick_channel_is_read_when_it_is_well_again(
    place: DiscordStandIn, store: MemoryStore, ada: User
) -> None:
    ada.says_in(CHANNEL, "missed", mention=True)
    place.channel(CHANNEL).refusal = SERVER_ERROR
    async with online(place, store) as second:
        ada.says_in(CHANNEL, "now", mention=True)
        await second.takes(1)
        place.channel(CHANNEL).refusal = None
        second.clock.pass_a_minute()
        await place.wait_for(lambda: {"now", "missed"} == set(second.inbox.texts))
        ada.says_in(CHANNEL, "later", mention=True)
        await place.wait_for(lambda: "later" in second.inbox.texts)
    async with online(place, store) as third:
        ada.says_in(CHANNEL, "and on", mention=True)
        await third.takes(1)
    assert third.inbox.texts == ["and on"]


async def test_a_person_does_not_wait_for_the_histories_of_all_others(
    place: DiscordStandIn,
) -> None:
    store = MemoryStore()
    people = [place.user(100 + number, f"P{number}") for number in range(60)]
    async with online(place, store) as first:
        for person in people:
            person.says("hello")
        await first.takes(60)
    place.faults.always("get_messages", Slow(0.1))
    async with online(place, store) as second:
        people[0].says("quick?")
        await second.takes(1)
        assert len(place.calls_of("get_messages")) < 40


@pytest.mark.parametrize(
    "fault",
    [
        Raw(200, "<html>please log in</html>"),
        Raw(200, ""),
        GARBAGE,
        Raw(200, "{}", JSON),
        Raw(200, '["?"]', JSON),
        Raw(200, "[{}]", JSON),
        BAD_GATEWAY,
        Refuse(500, "oops"),
        Refuse(429, "slow down", retry_after=1),
        Raw(403, '{"message": "blocked"}', JSON),
        discord_error(403, 40333, "internal network error").refuse,
    ],
    ids=["a proxy's page", "nothing", "half an answer", "no list", "no messages", "no ids", "502",
         "500", "429", "a proxy's 403", "a 403 that passes"],
)  # fmt: skip
async def test_an_odd_answer_is_not_the_end_of_a_history(
    place: DiscordStandIn, ada: User, fault: Fault
) -> None:
    store = MemoryStore()
    async with online(place, store) as first:
        ada.says("hello")
        await first.takes(1)
    ada.says("missed")
    place.faults.next("get_messages", fault, fault)
    async with online(place, store) as second:
        ada.says("now")
        await second.takes(2)
        assert second.adapter.health().last_error == ""
    assert list(dict.fromkeys(second.inbox.texts)) == ["missed", "now"]


async def test_a_history_that_never_comes_is_asked_for_again(
    place: DiscordStandIn, store: MemoryStore, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PAGE_SECONDS", 0.1)
    ada.says("missed")
    place.faults.next("get_messages", Hang(), Hang())
    async with online(place, store) as second:
        await second.takes(1)
    assert second.inbox.texts == ["missed"]


@pytest.mark.parametrize("name", SPOILED)
async def test_a_message_that_cannot_be_read_hides_no_other(
    place: DiscordStandIn, store: MemoryStore, ada: User, name: str
) -> None:
    ada.says("missed")
    ada.sends_kind(text="strange", **{name: SPOILED[name]})
    ada.says("missed, too")
    with capture_logs() as logs:
        async with online(place, store) as second:
            await second.takes(2)
    assert [text for text in second.inbox.texts if text != "strange"] == ["missed", "missed, too"]
    left_out = [line for line in logs if line["log_level"] == "error"]
    assert len(left_out) == 1


async def test_a_token_that_is_refused_for_a_history_ends_it(
    place: DiscordStandIn, store: MemoryStore
) -> None:
    place.faults.always("get_messages", Refuse(401, "401: Unauthorized"))
    second = Bench(place, store)
    await second.adapter.start()
    await second.says("refuses DISCORD_BOT_TOKEN")
    await place.wait_for(lambda: place.gateway.connected == 0)
    calls = len(place.calls)
    await asyncio.sleep(0.1)
    assert len(place.calls) == calls
    await second.adapter.close()
