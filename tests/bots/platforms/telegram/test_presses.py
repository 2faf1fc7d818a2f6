"""Buttons through the genuine SDK: what stands under a message, and what a press of it says."""

import pytest

from bots.platforms.telegram.presses import OUT_OF_SIGHT
from core.domain.keys import Address
from core.domain.messages import Button, ModelFailure, OutboxMessage, Part
from core.domain.notices import STRANGER
from core.errors import StorageError
from tests.bots.platforms.telegram.kit import GROUP, Bench
from tests.contract.house import House, until
from tests.contract.towns_telegram import TelegramTown
from tests.standins.faults import GARBAGE, Fault, Hang, Refuse
from tests.standins.telegram import TelegramStandIn
from tests.standins.telegram_chats import Message
from tests.standins.telegram_user import User, buttons_of

AGAIN = Button("Try again", "/retry")
GO_ON = Button("Go on", "go on")
IN_A_DM = Address(platform="telegram", account="123456", chat="7")


def with_buttons(*buttons: Button, text: str = "what now?") -> Part:
    return Part(text=text, plain=text, buttons=buttons)


async def shown(bench: Bench, part: Part, address: Address = IN_A_DM) -> int:
    row = OutboxMessage(id="k@1", key="k", address=address, kind="notice", part=part)
    return int(await bench.adapter.channel.send(row))


async def asked(bench: Bench, ada: User) -> int:
    """A message with a button, in the private chat."""
    ada.says("hello")
    await bench.takes()
    return await shown(bench, with_buttons(AGAIN))


async def test_buttons_stand_under_the_message_each_in_a_row(bench: Bench, ada: User) -> None:
    ada.says("hello")
    await shown(bench, with_buttons(AGAIN, GO_ON))
    rows = ada.chat[-1].buttons["inline_keyboard"]
    assert [[button["text"] for button in row] for row in rows] == [["Try again"], ["Go on"]]


async def test_a_button_that_says_more_than_telegram_keeps_is_left_out(
    bench: Bench, ada: User
) -> None:
    ada.says("hello")
    longest, longer = Button("fits", "ä" * 32), Button("does not", "ä" * 32 + "a")
    await shown(bench, with_buttons(longer, longest))
    assert buttons_of(ada.chat[-1].buttons) == {"fits": "ä" * 32}
    await shown(bench, with_buttons(longer))
    assert ada.chat[-1].buttons is None


async def test_an_edit_brings_its_own_buttons(bench: Bench, ada: User) -> None:
    message = str(await asked(bench, ada))
    await bench.adapter.channel.edit(IN_A_DM, message, with_buttons(GO_ON, text="changed"))
    assert buttons_of(ada.chat[-1].buttons) == {"Go on": "go on"}
    await bench.adapter.channel.edit(IN_A_DM, message, with_buttons(text="done"))
    assert ada.chat[-1].buttons is None


async def test_a_press_says_what_the_button_says(bench: Bench, ada: User) -> None:
    message = await asked(bench, ada)
    query = ada.clicks(message, "/retry")
    hello, press = await bench.takes(2)
    assert (press.text, press.user, press.user_name) == ("/retry", "7", "Ada")
    assert press.address == hello.address == IN_A_DM
    assert press.update_id == str(bench.tg.updates.newest)
    assert press.sent_at.utcoffset() is not None
    await bench.tg.wait_for(lambda: bench.tg.methods.query_answers[query])


async def test_a_press_that_comes_again_has_the_same_id(bench: Bench, ada: User) -> None:
    ada.clicks(await asked(bench, ada), "/retry")
    await bench.takes(2)
    bench.tg.redeliver(bench.tg.updates.newest)
    _, first, again = await bench.takes(3)
    assert first.update_id == again.update_id


async def test_a_press_in_a_topic_belongs_there(bench: Bench, ada: User) -> None:
    bench.tg.group(GROUP, forum=True)
    ada.says_in(GROUP, "where?", thread_id=5, mention=True)
    (said,) = await bench.takes()
    message = await shown(bench, with_buttons(AGAIN), said.address)
    ada.clicks(message, "/retry", chat_id=GROUP)
    _, press = await bench.takes(2)
    assert (press.address.chat, press.address.thread) == (str(GROUP), "5")
    assert (press.address.chat_type, press.address.reply_to) == ("group", str(message))


async def test_a_press_in_a_topic_of_a_dm_belongs_there(bench: Bench, ada: User) -> None:
    ada.says("where?", thread_id=9)
    (said,) = await bench.takes()
    ada.clicks(await shown(bench, with_buttons(AGAIN), said.address), "/retry")
    _, press = await bench.takes(2)
    assert press.address == said.address


async def test_a_message_out_of_sight_has_no_buttons_any_more_and_says_so(
    bench: Bench, ada: User
) -> None:
    query = ada.clicks(await asked(bench, ada), "/retry", in_sight=False)
    told = await bench.tg.wait_for(lambda: bench.tg.methods.query_answers[query])
    assert (told or {})["text"] == OUT_OF_SIGHT
    assert bench.inbox.texts == ["hello"]


async def test_a_press_that_cannot_be_stored_comes_again(bench: Bench, ada: User) -> None:
    message = await asked(bench, ada)
    bench.inbox.failing = StorageError("disk full")
    query = ada.clicks(message, "/retry")
    await bench.tg.wait_for(lambda: len(bench.inbox.offered) >= 3)
    assert bench.tg.methods.query_answers[query] is None
    bench.inbox.failing = None
    await bench.takes(2)
    assert bench.inbox.texts == ["hello", "/retry"]
    await bench.tg.wait_for(lambda: bench.tg.methods.query_answers[query])


@pytest.mark.parametrize(
    "fault",
    [Hang(), GARBAGE, Refuse(400, "Bad Request: query is too old")],
    ids=["hangs", "garbage", "too old"],
)
async def test_an_answer_to_a_press_that_fails_holds_up_nothing(
    bench: Bench, ada: User, fault: Fault
) -> None:
    message = await asked(bench, ada)
    bench.tg.faults.next("answerCallbackQuery", fault)
    ada.clicks(message, "/retry")
    ada.says("next")
    await bench.takes(3)
    await bench.tg.wait_for(lambda: bench.tg.calls_of("answerCallbackQuery"))
    assert bench.inbox.texts == ["hello", "/retry", "next"]
    assert bench.adapter.health().ok


async def test_a_stranger_who_presses_goes_through_the_same_gate(
    tg: TelegramStandIn, ada: User
) -> None:
    failure = ModelFailure(kind="try_again", detail="no answer")
    house = House(TelegramTown(tg, "polling"), failure, allowed_users=("telegram:7",))
    eve = tg.user(8, "Eve")
    tg.group(GROUP)

    def with_a_button() -> list[Message]:
        return [message for message in ada.sees(GROUP) if message.buttons]

    async with house.lives():
        ada.says_in(GROUP, "hello", mention=True)
        await until(with_a_button)
        eve.clicks(with_a_button()[-1].id, "/retry", chat_id=GROUP)
        await until(lambda: len(ada.bot_texts(GROUP)) == 2)
        await house.settles()
    assert ada.bot_texts(GROUP)[-1].startswith(STRANGER.partition(" `")[0])
    assert len(house.script.requests) == 1
