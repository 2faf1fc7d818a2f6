"""What is said is stored in order, live or from the history, and nothing is missed."""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from core.errors import StorageError
from storage.memory import MemoryStore
from tests.bots.platforms.discord.kit import CHANNEL, FOREIGN, THREAD, Bench, online
from tests.standins.discord import DiscordStandIn
from tests.standins.discord_user import User


async def test_messages_are_taken_in_their_order(bench: Bench, ada: User) -> None:
    texts = [f"number {number}" for number in range(30)]
    for text in texts:
        ada.says(text)
    await bench.takes(30)
    assert bench.inbox.texts == texts


async def test_what_was_said_while_it_was_down_is_taken_in_order(
    place: DiscordStandIn, ada: User
) -> None:
    store, bob = MemoryStore(), place.user(8, "Bob")
    async with online(place, store) as first:
        ada.says("one")
        bob.says("one of Bob")
        ada.says_in(THREAD, "one there", mention=True)
        await first.takes(3)
    missed = [ada.says(f"missed {number}").text for number in range(150)]
    bob.says("two of Bob")
    ada.says_in(THREAD, "not for us")
    ada.says_in(THREAD, "two there", mention=True)
    async with online(place, store) as second:
        ada.says("now")
        await place.wait_for(lambda: {"now", "two there"} <= set(second.inbox.texts))
        taken = second.inbox.taken
    of_dm = [inbound.text for inbound in taken if inbound.address.chat == str(ada.dm)]
    assert list(dict.fromkeys(of_dm)) == [*missed, "now"]
    assert {"two of Bob", "two there"} < set(second.inbox.texts)
    assert "not for us" not in second.inbox.texts


async def test_a_message_is_the_same_live_and_from_the_history(
    place: DiscordStandIn, ada: User
) -> None:
    store = MemoryStore()
    async with online(place, store) as first:
        ada.says("anything")
        ada.says_in(THREAD, "anything", mention=True)
        await first.takes(2)
        first.inbox.failing = StorageError("disk full")
        ada.says("held", reply_to=ada.chat[0].id)
        await place.wait_for(lambda: len(first.inbox.offered) >= 3)
        ada.says_in(THREAD, "held there", mention=True)
    async with online(place, store) as second:
        await second.takes(2)
    held = {inbound.update_id: inbound for inbound in first.inbox.offered[2:]}
    again = {inbound.update_id: inbound for inbound in second.inbox.taken}
    assert held.items() <= again.items()
    assert set(second.inbox.texts) == {"held", "held there"}
    assert {inbound.quote for inbound in second.inbox.taken} == {"", "anything"}


@pytest.mark.parametrize("wrong", [timedelta(), timedelta(days=9), timedelta(days=-9)])
async def test_what_is_older_than_a_day_by_discords_clock_is_left_alone(
    place: DiscordStandIn, wrong: timedelta
) -> None:
    store = MemoryStore()
    place.chats.seconds_ago = 90_000
    ada = place.user(7, "Ada")
    async with online(place, store) as first:
        ada.says("one")
        await first.takes(1)
    ada.says("too late to answer")
    place.chats.seconds_ago = 80_000
    ada.says("in time")
    second = Bench(place, store)
    second.clock.ahead += wrong
    await second.adapter.start()
    await second.takes(1)
    await second.adapter.close()
    assert second.inbox.texts == ["in time"]


async def test_the_first_message_of_all_is_read_again_if_it_was_not_stored(
    place: DiscordStandIn, ada: User
) -> None:
    store = MemoryStore()
    async with online(place, store) as first:
        first.inbox.failing = StorageError("disk full")
        ada.says("my very first words")
        await place.wait_for(lambda: bool(first.inbox.offered))
    async with online(place, store) as second:
        await second.takes(1)
    assert (first.inbox.taken, second.inbox.texts) == ([], ["my very first words"])


async def test_a_channel_that_is_closed_to_us_does_not_hold_up_the_others(
    place: DiscordStandIn, ada: User
) -> None:
    store = MemoryStore()
    async with online(place, store) as first:
        ada.says("one")
        ada.says_in(CHANNEL, "one", mention=True)
        await first.takes(2)
    place.channel(CHANNEL).refusal = place.foreign_channel(FOREIGN).refusal
    ada.says("two")
    async with online(place, store) as second:
        await second.takes(1)
    assert second.inbox.texts == ["two"]


async def test_what_cannot_be_stored_is_held_in_order(bench: Bench, ada: User) -> None:
    bench.inbox.failing = StorageError("disk full")
    ada.says("one")
    ada.says("two")
    await bench.says("disk full")
    await bench.place.wait_for(lambda: len(bench.inbox.offered) >= 3)
    assert {inbound.text for inbound in bench.inbox.offered} == {"one"}
    assert not bench.adapter.health().ok
    bench.place.gateway.asks_to_reconnect()
    await bench.place.wait_for(lambda: bench.place.gateway.resumes == 1)
    assert not bench.adapter.health().ok
    bench.inbox.failing = None
    await bench.takes(2)
    await bench.is_well()
    assert bench.inbox.texts == ["one", "two"]


async def test_a_message_that_breaks_admission_lets_the_others_pass_in_the_end(
    bench: Bench, ada: User
) -> None:
    bench.inbox.failures.extend(RuntimeError("a bug") for _ in range(5))
    with capture_logs() as logs:
        ada.says("poison")
        ada.says("behind it")
        await bench.takes()
    assert bench.inbox.texts == ["behind it"]
    told = [line["left_out"] for line in logs if line["log_level"] == "error"]
    assert told == [False] * 4 + [True]


async def test_edits_and_deletes_do_not_matter(bench: Bench, ada: User) -> None:
    said = ada.says("helo")
    await bench.takes()
    ada.edits(said, "hello")
    ada.deletes(said)
    ada.says("behind them")
    await bench.takes(2)
    assert bench.inbox.texts == ["helo", "behind them"]
