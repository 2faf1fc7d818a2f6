"""What befalls one chat is no other's business: blocks, pauses and topics, with the whole service
behind them."""

import re

import pytest
from structlog.testing import capture_logs

from core.domain.messages import ModelRequest
from core.models.scripted import Result, ScriptedModel
from core.ports import OnText
from tests.contract.house import LINES, House, echo, until
from tests.contract.towns_telegram import TelegramTown
from tests.standins.base import Call, Hook
from tests.standins.faults import Fault, too_many
from tests.standins.telegram import TelegramStandIn
from tests.standins.telegram_user import User

PAUSE = 600
QUIET = 20
"""Looks of the service, with time passing, in which nothing may happen."""


class Growing(ScriptedModel):
    """Shows a beginning before it waits or answers."""

    async def complete(self, request: ModelRequest, on_text: OnText) -> Result:
        on_text("half of it")
        return await super().complete(request, on_text)


@pytest.fixture
def house(tg: TelegramStandIn) -> House:
    house = House(TelegramTown(tg, "polling"))
    house.script = Growing(*[echo] * LINES)
    return house


@pytest.fixture
def bob(tg: TelegramStandIn) -> User:
    return tg.user(8, "Bob")


def only(method: str, chat: int, fault: Fault) -> Hook:
    """Of that method's calls, those for that chat."""

    def hook(call: Call) -> Fault | None:
        return fault if (call.method, call.params.get("chat_id")) == (method, chat) else None

    return hook


def calls_to(tg: TelegramStandIn, chat: int) -> int:
    return len([call for call in tg.calls if call.params.get("chat_id") == chat])


async def answered(house: House, user: User, *texts: str) -> None:
    await until(lambda: user.bot_texts() == list(texts), user.bot_texts)


async def test_a_person_who_blocked_the_bot_is_let_go_and_holds_up_nobody(
    house: House, tg: TelegramStandIn, ada: User, bob: User
) -> None:
    house.script.hold()
    async with house.lives():
        ada.says("one")
        bob.says("two")
        await house.asked(2)
        with capture_logs() as logs:
            ada.blocks_bot()
            house.script.release()
            await answered(house, bob, "re: two")
            await house.settles()
            calls = calls_to(tg, ada.id)
            for _ in range(QUIET):
                house.clock.passes(seconds=PAUSE)
                await house.clock.sleep(1)
        assert calls_to(tg, ada.id) == calls
        ada.unblocks_bot()
        ada.says("three")
        await until(lambda: "re: three" in ada.bot_texts(), ada.bot_texts)
    given_up = [line["error"] for line in logs if line["event"] == "message given up"]
    assert [("blocked" in error) for error in given_up] == [True]


@pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")
@pytest.mark.parametrize(
    ("method", "shown"),
    [("sendMessage", []), ("editMessageText", ["half of it"]), ("sendChatAction", [])],
)
async def test_a_chat_that_is_told_to_pause_pauses_alone_and_in_everything(
    house: House, tg: TelegramStandIn, ada: User, bob: User, method: str, shown: list[str]
) -> None:
    def refused() -> bool:
        return any(call.outcome.startswith("429") for call in tg.calls_of(method))

    house.script.hold()
    async with house.lives():
        tg.before = only(method, ada.id, too_many(PAUSE))
        ada.says("one")
        await house.asked()
        await answered(house, ada, *shown)
        await until(lambda: shown or refused())
        house.script.release()
        await until(refused)
        bob.says("two")
        await answered(house, bob, "re: two")
        calls = calls_to(tg, ada.id)
        ada.says("three")
        await house.asked(3)
        for _ in range(QUIET):
            await house.clock.sleep(1)
        assert calls_to(tg, ada.id) == calls
        tg.before = lambda call: None
        house.clock.passes(seconds=PAUSE + 1)
        await house.settles()
    assert ada.bot_texts() == ["re: one", "re: three"]


async def test_each_topic_of_a_private_chat_is_a_conversation_of_its_own(
    house: House, ada: User
) -> None:
    async with house.lives():
        ada.says("word1", thread_id=4)
        await answered(house, ada, "re: word1")
        ada.says("word2", thread_id=9)
        await answered(house, ada, "re: word1", "re: word2")
        ada.says("word3", thread_id=4)
        await answered(house, ada, "re: word1", "re: word2", "re: word3")
        await house.settles()
    assert [message.thread_id for message in ada.chat if message.from_bot] == [4, 9, 4]
    views = [re.findall(r"User.*?(word\d)", str(r.messages)) for r in house.script.requests]
    assert views == [["word1"], ["word2"], ["word1", "word3"]]
    assert sorted(stream.key for stream in await house.store.streams()) == [
        "agent:main:telegram:dm:7:thread:4",
        "agent:main:telegram:dm:7:thread:9",
    ]
