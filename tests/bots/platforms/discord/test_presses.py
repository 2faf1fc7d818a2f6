"""Commands of the menu and buttons: taken as if they were typed, and answered in time."""

import pytest

from bots.platforms.discord.presses import ELSEWHERE, NOT_STORED, NOWHERE
from core.domain.keys import Address
from core.domain.messages import Button, OutboxMessage, Part
from core.errors import StorageError
from tests.bots.platforms.discord.kit import CHANNEL, FOREIGN, THREAD, Bench
from tests.standins.discord_methods import Interaction
from tests.standins.discord_user import User
from tests.standins.faults import BAD_GATEWAY, Reset

AGAIN = Part(text="failed", plain="failed", buttons=(Button("Try again", "/retry"),))


async def answered(bench: Bench, made: Interaction) -> None:
    await bench.place.wait_for(lambda: made.answer is not None and made.shown != "…")


async def shows(bench: Bench, ada: User) -> None:
    """A message with a button, in the DM."""
    here = Address(platform="discord", account="123456", chat=str(ada.dm))
    row = OutboxMessage(id="k@1", key="k", address=here, kind="notice", part=AGAIN)
    await bench.adapter.channel.send(row)


async def test_a_command_is_what_it_would_be_if_it_were_typed(bench: Bench, ada: User) -> None:
    made = ada.commands("resume", "20260505_143022_a1b2c3d4")
    (taken,) = await bench.takes()
    assert (taken.text, taken.user) == ("/resume 20260505_143022_a1b2c3d4", "7")
    assert (taken.user_name, taken.update_id) == ("Ada", str(made.id))
    assert (taken.address.chat, taken.address.chat_type) == (str(ada.dm), "dm")
    await answered(bench, made)
    assert made.shown is None


@pytest.mark.parametrize("channel", [CHANNEL, THREAD])
async def test_a_command_in_a_guild_is_answered_there(
    bench: Bench, ada: User, channel: int
) -> None:
    made = ada.commands("stop", channel_id=channel)
    (taken,) = await bench.takes()
    assert (taken.address.chat, taken.address.chat_type) == (str(channel), "channel")
    await answered(bench, made)
    row = OutboxMessage(
        id="k@1",
        key="k",
        address=taken.address,
        kind="notice",
        part=Part(text="Stopped.", plain="Stopped."),
    )
    await bench.adapter.channel.send(row)
    assert ada.bot_texts(channel) == ["Stopped."]


async def test_where_we_are_not_the_answer_comes_as_a_direct_message(
    bench: Bench, ada: User
) -> None:
    made = ada.commands("new", channel_id=FOREIGN)
    (taken,) = await bench.takes()
    assert (taken.address.chat, taken.address.chat_type) == (str(ada.dm), "dm")
    await bench.place.wait_for(lambda: made.shown == ELSEWHERE)


async def test_where_there_is_no_way_to_answer_it_is_said_so(bench: Bench, ada: User) -> None:
    ada.closes_dms()
    made = ada.commands("new", channel_id=FOREIGN)
    await bench.place.wait_for(lambda: made.shown == NOWHERE)
    assert bench.inbox.offered == []


async def test_a_button_says_what_stands_on_it(bench: Bench, ada: User) -> None:
    await shows(bench, ada)
    first, second = (ada.clicks(ada.chat[-1], "Try again") for _ in range(2))
    one, other = await bench.takes(2)
    assert (one.text, other.text) == ("/retry", "/retry")
    assert {one.update_id, other.update_id} == {str(first.id), str(second.id)}
    assert (one.address.chat, one.address.chat_type, one.user) == (str(ada.dm), "dm", "7")
    await answered(bench, first)
    assert (first.shown, ada.bot_texts()) == (None, ["failed"])


async def test_a_slow_disk_is_not_waited_for(bench: Bench, ada: User) -> None:
    await shows(bench, ada)
    bench.inbox.gate.clear()
    command, press = ada.commands("new"), ada.clicks(ada.chat[-1], "Try again")
    await bench.place.wait_for(lambda: (command.shown, press.shown) == ("…", "…"))
    bench.inbox.gate.set()
    await answered(bench, command)
    await answered(bench, press)
    await bench.takes(2)


async def test_what_cannot_be_stored_is_said_to_be_lost(bench: Bench, ada: User) -> None:
    await shows(bench, ada)
    bench.inbox.failing = StorageError("disk full")
    command, press = ada.commands("new"), ada.clicks(ada.chat[-1], "Try again")
    await bench.place.wait_for(lambda: (command.shown, press.shown) == (NOT_STORED, NOT_STORED))
    assert bench.inbox.taken == []


async def test_a_disk_that_comes_back_is_in_time(bench: Bench, ada: User) -> None:
    bench.inbox.failures.extend(StorageError("busy") for _ in range(3))
    made = ada.commands("new")
    await bench.takes()
    await answered(bench, made)
    assert made.shown is None


async def test_an_answer_that_fails_costs_nothing_else(bench: Bench, ada: User) -> None:
    bench.place.faults.next("callback", Reset())
    bench.place.faults.next("delete_answer", BAD_GATEWAY)
    ada.commands("new")
    made = ada.commands("stop")
    taken = await bench.takes(2)
    assert {inbound.text for inbound in taken} == {"/new", "/stop"}
    await bench.place.wait_for(lambda: made.answer is not None)
    assert bench.adapter.health().ok
