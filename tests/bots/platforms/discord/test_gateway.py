"""Receiving through the genuine SDK: what is said is taken, in order, whatever the gateway does."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from bots.platforms.discord.gateway import RESUME_SECONDS
from core.domain.keys import Address
from tests.bots.platforms.discord.kit import CHANNEL, COMMANDS, THREAD, Bench, online
from tests.standins.discord import DiscordStandIn
from tests.standins.discord_gateway import GUILD_MESSAGES
from tests.standins.discord_user import User
from tests.standins.faults import BAD_GATEWAY, GARBAGE, Fault, Raw, Refuse, Reset, too_many

NOT_FOUND = Refuse(404, "404: Not Found")
Break = Callable[[DiscordStandIn], None]


async def test_a_dm_is_taken_with_all_that_it_takes_to_answer(bench: Bench, ada: User) -> None:
    said = ada.says("hello")
    (taken,) = await bench.takes()
    assert taken.address == Address(
        platform="discord", account="123456", chat=str(ada.dm), reply_to=str(said.id)
    )
    assert (taken.user, taken.user_name, taken.text) == ("7", "Ada", "hello")
    assert taken.update_id == taken.message_id == str(said.id)
    assert abs(taken.sent_at.timestamp() - said.versions[0].at) < 1
    assert taken.sent_at.utcoffset() is not None
    assert not taken.trusted


async def test_elsewhere_it_is_heard_when_it_is_mentioned(bench: Bench, ada: User) -> None:
    ada.says_in(CHANNEL, "among people")
    asked = ada.says_in(CHANNEL, "what time is it?", mention=True)
    await bench.takes(1)
    shown = bench.adapter.channel.render("noon")
    await bench.adapter.channel.typing(bench.inbox.taken[0].address)
    ada.says_in(THREAD, "/new", mention=True)
    first, command = await bench.takes(2)
    assert (first.text, command.text, len(shown)) == ("what time is it?", "/new", 1)
    assert first.address == Address(
        platform="discord",
        account="123456",
        chat=str(CHANNEL),
        chat_type="channel",
        reply_to=str(asked.id),
    )
    assert (command.address.chat, command.address.chat_type) == (str(THREAD), "channel")
    assert bench.place.methods.typed == [CHANNEL]


async def test_no_intent_is_privileged_and_less_is_enough(place: DiscordStandIn, ada: User) -> None:
    place.gateway.refused_intents |= GUILD_MESSAGES
    bench = Bench(place)
    await bench.adapter.start()
    await bench.is_well()
    ada.says("hello")
    await bench.takes()
    await bench.adapter.close()
    assert place.gateway.identifies == 2


def is_cut(place: DiscordStandIn) -> None:
    place.gateway.aborts()


def is_asked_to_reconnect(place: DiscordStandIn) -> None:
    place.gateway.asks_to_reconnect()


def is_invalid_but_resumable(place: DiscordStandIn) -> None:
    place.gateway.invalidates(resumable=True)


def is_closed(place: DiscordStandIn) -> None:
    place.gateway.closes(4000)


@pytest.mark.parametrize(
    "broken", [is_cut, is_asked_to_reconnect, is_invalid_but_resumable, is_closed]
)
async def test_a_broken_connection_is_resumed_and_nothing_is_missed(
    bench: Bench, ada: User, broken: Break
) -> None:
    ada.says("before")
    await bench.takes(1)
    broken(bench.place)
    ada.says("meanwhile")
    ada.says_in(THREAD, "there, too", mention=True)
    await bench.takes(3)
    await bench.place.wait_for(lambda: bench.place.gateway.resumes == 1)
    await bench.is_well()
    assert bench.inbox.texts == ["before", "meanwhile", "there, too"]
    assert bench.place.gateway.identifies == 1


async def test_a_gateway_that_fails_once_costs_no_session(bench: Bench, ada: User) -> None:
    bench.place.faults.next("gateway", BAD_GATEWAY)
    bench.place.gateway.aborts()
    ada.says("meanwhile")
    await bench.takes(1)
    await bench.place.wait_for(lambda: bench.place.gateway.resumes == 1)
    assert bench.place.gateway.identifies == 1


async def test_a_session_that_is_gone_begins_anew_and_reads_what_was_missed(
    bench: Bench, ada: User
) -> None:
    ada.says("before")
    ada.says_in(CHANNEL, "before", mention=True)
    await bench.takes(2)
    bench.place.gateway.invalidates()
    ada.says("meanwhile")
    ada.says_in(CHANNEL, "not for us")
    ada.says_in(CHANNEL, "for us", mention=True)
    await bench.place.wait_for(lambda: bench.place.gateway.identifies == 2)
    await bench.place.wait_for(lambda: {"for us", "meanwhile"} <= set(bench.inbox.texts))
    await bench.is_well()
    assert set(bench.inbox.texts[2:]) == {"for us", "meanwhile"}
    (pause,) = [seconds for seconds in bench.clock.slept if seconds != RESUME_SECONDS]
    assert 5.0 <= pause <= 15.0


async def test_sessions_are_not_begun_in_a_loop(place: DiscordStandIn) -> None:
    bench = Bench(place)
    place.methods.remaining_sessions = 20
    await bench.adapter.start()
    await bench.says("only 20 new sessions are left for 4.0 hours")
    assert place.gateway.identifies == 0
    place.methods.remaining_sessions = 1000
    bench.clock.pass_a_minute()
    await bench.is_well()
    for number in range(2, 5):
        place.gateway.invalidates()
        await place.wait_for(lambda number=number: place.gateway.identifies == number)
        await bench.is_well()
    await bench.adapter.close()
    slept = [seconds for seconds in bench.clock.slept if seconds != RESUME_SECONDS]
    assert slept[0] == 4 * 3600
    assert slept[1:] == sorted(slept[1:])
    assert len(slept) == 4
    assert slept[-1] >= 25


async def test_a_connection_that_does_not_come_back_is_begun_anew(bench: Bench, ada: User) -> None:
    ada.says("before")
    await bench.takes(1)
    bench.place.gateway.silent = True
    bench.place.gateway.aborts()
    ada.says("meanwhile")
    await bench.place.wait_for(lambda: bench.place.gateway.resumes == 1)
    bench.clock.pass_a_minute()
    await bench.place.wait_for(lambda: bench.place.gateway.identifies == 2)
    bench.place.gateway.silent = False
    bench.place.gateway.aborts()
    await bench.takes(2)
    await bench.is_well()
    assert bench.inbox.texts == ["before", "meanwhile"]


async def test_a_refused_token_ends_it_with_one_line(place: DiscordStandIn) -> None:
    place.revoke_token()
    bench = Bench(place)
    with capture_logs() as logs:
        await bench.adapter.start()
        await bench.says("refuses DISCORD_BOT_TOKEN")
        calls = len(place.calls)
        await asyncio.sleep(0.1)
    assert len(place.calls) == calls == 1
    assert not bench.adapter.health().ok
    assert [line["state"] for line in logs if line["log_level"] == "error"] == ["refused"]
    await bench.adapter.close()


async def test_a_token_that_is_taken_back_ends_it_with_one_line(bench: Bench) -> None:
    with capture_logs() as logs:
        bench.place.revoke_token()
        bench.place.gateway.closes(4004)
        await bench.says("refuses DISCORD_BOT_TOKEN")
        calls = len(bench.place.calls)
        await asyncio.sleep(0.1)
    assert len(bench.place.calls) == calls
    assert [line["state"] for line in logs if line["log_level"] == "error"] == ["refused"]


@pytest.mark.parametrize(
    "fault",
    [BAD_GATEWAY, GARBAGE, Reset(), Refuse(500, "oops"), Raw(404, "<html>"), NOT_FOUND],
    ids=["502", "garbage", "reset", "500", "a proxy's 404", "Discord's 404"],
)
@pytest.mark.parametrize("method", ["get_me", "get_application", "get_gateway"])
async def test_a_failing_call_is_made_again(
    place: DiscordStandIn, ada: User, method: str, fault: Fault
) -> None:
    place.faults.next(method, fault, fault)
    async with online(place) as bench:
        ada.says("hello")
        await bench.takes()
    assert len(bench.clock.slept) >= 2
    assert place.gateway.identifies == 1


async def test_a_gateway_that_fails_is_tried_again(place: DiscordStandIn, ada: User) -> None:
    place.faults.next("gateway", BAD_GATEWAY, Reset())
    async with online(place) as bench:
        ada.says("hello")
        await bench.takes()


async def test_a_call_that_is_told_to_slow_down_does(place: DiscordStandIn, ada: User) -> None:
    place.faults.next("get_me", too_many(17))
    async with online(place) as bench:
        ada.says("hello")
        await bench.takes()
        assert 17.0 in bench.clock.slept


async def test_an_outage_is_waited_out(bench: Bench, ada: User) -> None:
    ada.says("before")
    await bench.takes(1)
    await asyncio.to_thread(bench.place.stop)
    await bench.place.wait_for(lambda: not bench.adapter.health().ok)
    bench.clock.pass_a_minute()
    await bench.says("out of reach")
    bench.place.start()
    ada.says("back?")
    await bench.takes(2)
    await bench.is_well()
    assert bench.inbox.texts == ["before", "back?"]


async def test_silence_is_not_health(bench: Bench) -> None:
    bench.clock.ahead += timedelta(seconds=121)
    health = bench.adapter.health()
    assert (health.ok, "silent for 121 s" in health.detail) == (False, True)
    assert health.last_sign is not None


async def test_heartbeats_are_signs_of_life(place: DiscordStandIn) -> None:
    place.gateway.heartbeat_ms = 50
    async with online(place) as bench:
        bench.clock.ahead += timedelta(seconds=121)
        await bench.is_well()


async def test_starting_does_not_wait_for_discord(place: DiscordStandIn, ada: User) -> None:
    bench = Bench(place)
    await asyncio.to_thread(place.stop)
    await bench.adapter.start()
    assert not bench.adapter.health().ok
    place.start()
    await bench.is_well()
    ada.says("hello")
    await bench.takes()
    await bench.adapter.close()


async def test_starting_and_stopping_twice_over_stacks_nothing(bench: Bench, ada: User) -> None:
    place, adapter = bench.place, bench.adapter
    await adapter.start()
    for _ in range(2):
        await adapter.stop()
        await adapter.stop()
        await adapter.start()
        await adapter.start()
        await bench.is_well()
    ada.says("once")
    made = ada.commands("new")
    await bench.takes(2)
    await place.wait_for(lambda: made.answer is not None)
    assert (len(bench.inbox.offered), place.gateway.connected) == (2, 1)
    await adapter.close()
    await adapter.close()
    assert not adapter.health().ok
    await place.wait_for(lambda: place.gateway.connected == 0)
    await adapter.start()
    await bench.is_well()
    ada.says("after closing")
    await bench.takes(3)


async def test_nothing_is_taken_after_a_stop(bench: Bench, ada: User) -> None:
    await bench.adapter.stop()
    ada.says("later")
    await asyncio.sleep(0.05)
    assert bench.inbox.offered == []


async def test_the_commands_are_in_discords_menu_for_all(bench: Bench) -> None:
    await bench.place.wait_for(lambda: bool(bench.place.methods.commands))
    menu = bench.place.methods.commands
    assert [(entry["name"], entry["description"]) for entry in menu] == list(COMMANDS)
    assert [entry["integration_types"] for entry in menu] == [[0, 1]] * len(menu)
    assert [entry["contexts"] for entry in menu] == [[0, 1, 2]] * len(menu)
    assert [option["name"] for entry in menu for option in entry["options"]] == ["text"] * 2


async def test_a_menu_that_is_refused_does_not_matter(place: DiscordStandIn, ada: User) -> None:
    place.faults.next("put_commands", Refuse(400, "Invalid Form Body", parameters={"code": 50035}))
    async with online(place) as bench:
        ada.says("hello")
        await bench.takes()


async def test_a_check_names_the_bot_and_takes_no_message(place: DiscordStandIn) -> None:
    bench = Bench(place)
    health = await bench.adapter.check()
    await bench.adapter.close()
    assert (health.ok, "it is stillhere" in health.detail) == (True, True)
    assert [call.method for call in place.calls] == ["get_me", "get_application"]


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (Refuse(401, "401: Unauthorized"), "DISCORD_BOT_TOKEN"),
        (Reset(), "out of reach"),
        (Raw(401, "<html>"), "out of reach"),
        (NOT_FOUND, "out of reach"),
        (Raw(200, "[]", "application/json"), "out of reach"),
    ],
    ids=["refused", "reset", "a proxy's 401", "Discord's 404", "strange"],
)
async def test_a_check_says_what_is_wrong(place: DiscordStandIn, fault: Fault, word: str) -> None:
    place.faults.always("get_me", fault)
    bench = Bench(place)
    health = await bench.adapter.check()
    await bench.adapter.close()
    assert (health.ok, word in health.detail) == (False, True)
