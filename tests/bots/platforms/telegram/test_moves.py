"""A group becomes a supergroup: its conversation goes on, whoever hears of the move first."""

import re

import pytest

from core.errors import StorageError
from tests.contract.house import House, until
from tests.contract.towns_telegram import TelegramTown
from tests.standins.faults import Refuse
from tests.standins.telegram import UPGRADED, TelegramStandIn
from tests.standins.telegram_user import User

OLD = -5
NEW = -1005
KEY = f"agent:main:telegram:group:{OLD}"


@pytest.fixture
def house(tg: TelegramStandIn) -> House:
    tg.group(OLD, kind="group")
    return House(TelegramTown(tg, "polling"), "one", "two", "three")


async def keys(house: House) -> list[str]:
    return [stream.key for stream in await house.store.streams()]


def seen_by_the_model(house: House) -> list[str]:
    return re.findall(r"word\d", str(house.script.requests[-1].messages))


async def answered(house: House, ada: User, chat: int, *texts: str) -> None:
    await until(lambda: len(ada.bot_texts(chat)) >= len(texts), lambda: ada.bot_texts(chat))
    await house.settles()
    assert ada.bot_texts(chat) == list(texts)


async def test_its_conversation_goes_on_in_the_new_place_and_after_a_restart(
    house: House, tg: TelegramStandIn, ada: User
) -> None:
    async with house.lives():
        ada.says_in(OLD, "word1", mention=True)
        await answered(house, ada, OLD, "one")
        tg.upgrades(OLD, NEW, ada)
        ada.says_in(NEW, "word2", mention=True)
        await answered(house, ada, NEW, "two")
    async with house.lives():
        said = ada.says_in(NEW, "word3", mention=True)
        await answered(house, ada, NEW, "two", "three")
    assert seen_by_the_model(house) == ["word1", "word2", "word3"]
    assert await keys(house) == [KEY]
    assert ada.sees(NEW)[-1].reply_to == said.id
    assert [call for call in tg.calls_of("sendMessage") if call.outcome != "ok"] == []


async def test_an_answer_under_way_follows_it_and_quotes_nothing_there(
    house: House, tg: TelegramStandIn, ada: User
) -> None:
    """Telegram may say it first by refusing what is sent to the old place."""
    house.script.hold()
    async with house.lives():
        ada.says_in(OLD, "word1", mention=True)
        await house.asked()
        tg.group(NEW)
        moved = Refuse(400, UPGRADED, parameters={"migrate_to_chat_id": NEW})
        tg.chats.chats[OLD].refusal = moved
        house.script.release()
        await answered(house, ada, NEW, "one")
        ada.says_in(NEW, "word2", mention=True)
        await answered(house, ada, NEW, "one", "two")
    assert seen_by_the_model(house) == ["word1", "word2"]
    assert await keys(house) == [KEY]
    there = [call.params for call in tg.calls_of("sendMessage") if call.params["chat_id"] == NEW]
    assert ["reply_parameters" in params for params in there] == [False, True]


async def test_a_move_that_cannot_be_stored_is_told_again(
    house: House, tg: TelegramStandIn, ada: User
) -> None:
    async def full(name: str, value: str) -> None:
        raise StorageError("disk full")

    async with house.lives() as service:
        ada.says_in(OLD, "word1", mention=True)
        await answered(house, ada, OLD, "one")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(house.store, "set_fact", full)
            tg.upgrades(OLD, NEW, ada)
            ada.says_in(NEW, "word2", mention=True)
            await until(lambda: "disk full" in house.health(service).detail)
        await answered(house, ada, NEW, "two")
    assert seen_by_the_model(house) == ["word1", "word2"]
