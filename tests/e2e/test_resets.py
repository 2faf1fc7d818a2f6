"""When a conversation is over, and how it comes back: by the real service, on a clock to move."""

import asyncio
from datetime import time

import pytest

from bots.app import TIMER_SECONDS
from core.domain.messages import ModelReply, ToolCall
from core.tools import remind_me
from tests.bots.life import KEY, START, House, Room, eventually, until

TOLD = "this is a new conversation. /resume goes back to the one before."


async def closed(house: House) -> bool:
    return (await house.events())[-1] == "SessionClosed"


async def test_a_message_that_finds_its_session_expired_is_answered_in_the_new_one() -> None:
    house = House("hello", "good morning", "and on", idle_reset_minutes=60)
    async with house.lives():
        await house.room.hears("hi")
        await house.room.sees("hello")
    house.clock.passes(minutes=61)
    async with house.lives():
        await house.room.hears("are you there?")
        await house.room.sees("good morning")
        await house.room.hears("go on")
        await house.room.sees("and on")
    first, second = await house.sessions()
    assert first != second
    assert [text for text in house.room.said if TOLD in text] == [house.room.said[1]]
    assert house.room.said[1].startswith("_(It was quiet here for a while")
    assert [message.text for message in house.script.requests[1].messages[1:]] == ["are you there?"]
    assert await house.outcomes() == {"answered": 3}


async def test_the_clock_closes_it_without_a_word_and_the_next_message_is_told() -> None:
    house = House("hello", "good morning", idle_reset_minutes=60)
    async with house.lives():
        await house.room.hears("hi")
        await house.room.sees("hello")
        house.clock.passes(minutes=61)
        await eventually(lambda: closed(house))
        assert house.room.said == ["hello"]
        await house.room.hears("are you there?")
        await house.room.sees("good morning")
    assert len([text for text in house.room.said if TOLD in text]) == 1
    assert len(await house.sessions()) == 2


async def test_resume_brings_the_old_conversation_back() -> None:
    house = House("hello", "good morning", "you said hi", idle_reset_minutes=60)
    async with house.lives():
        await house.room.hears("hi")
        await house.room.sees("hello")
        house.clock.passes(minutes=61)
        await house.room.hears("are you there?")
        await house.room.sees("good morning")
        await house.room.hears("/resume")
        await house.room.sees(f"`{(await house.sessions())[0]}`")
        await house.room.hears("what did I say?")
        await house.room.sees("you said hi")
    shown = [message.text for message in house.script.requests[-1].messages[1:]]
    assert shown == ["hi", "hello", "what did I say?"]


async def test_the_way_back_is_there_before_any_new_message() -> None:
    house = House("hello", "still here", idle_reset_minutes=60)
    async with house.lives():
        await house.room.hears("hi")
        await house.room.sees("hello")
        house.clock.passes(minutes=61)
        await eventually(lambda: closed(house))
        await house.room.hears("/resume")
        await house.room.sees("We are back")
        await house.room.hears("and?")
        await house.room.sees("still here")
    assert len(await house.sessions()) == 1
    assert not [text for text in house.room.said if TOLD in text]


async def test_a_session_is_never_over_while_a_turn_is_open() -> None:
    house = House(idle_reset_minutes=60, daily_reset_at=time(15))
    house.script.hold()
    async with house.lives():
        await house.room.hears("think")
        await until(lambda: len(house.script.requests) == 1)
        house.clock.passes(hours=30)
        await house.room.hears("still thinking?")
        house.script.then("thought", "yes")
        house.script.release()
        await house.room.sees("thought")
        await house.room.sees("yes")
    assert len(await house.sessions()) == 1
    assert not [text for text in house.room.said if TOLD in text]


async def test_only_what_a_person_writes_counts_as_activity() -> None:
    """The answer came long after the message: quiet counts from the message."""
    house = House(idle_reset_minutes=60)
    house.script.hold()
    async with house.lives():
        await house.room.hears("think")
        await until(lambda: len(house.script.requests) == 1)
        house.clock.passes(minutes=59)
        house.script.then("thought", "new")
        house.script.release()
        await house.room.sees("thought")
        house.clock.passes(minutes=2)
        await house.room.hears("and?")
        await house.room.sees("new")
    assert len(await house.sessions()) == 2


@pytest.mark.parametrize("by_the_clock", [True, False])
async def test_a_new_day_is_a_new_conversation(by_the_clock: bool) -> None:
    house = House("hello", "good morning", idle_reset_minutes=0, daily_reset_at=time(4))
    async with house.lives():
        await house.room.hears("hi")
        await house.room.sees("hello")
        house.clock.passes(hours=13)
        assert not await closed(house)
        house.clock.passes(hours=1)
        for _ in range(by_the_clock):
            await eventually(lambda: closed(house))
        await house.room.hears("morning")
        await house.room.sees("good morning")
    assert house.room.said[1].startswith("_(A new day")
    assert len(await house.sessions()) == 2


async def test_without_resets_a_conversation_is_for_ever() -> None:
    house = House("hello", "hello again", idle_reset_minutes=0)
    async with house.lives():
        await house.room.hears("hi")
        await house.room.sees("hello")
        house.clock.passes(days=3650)
        await house.room.hears("hi")
        await house.room.sees("hello again")
    assert len(await house.sessions()) == 1


def reminds(text: str, seconds: int) -> ModelReply:
    arguments = f'{{"text": "{text}", "seconds": {seconds}}}'
    return ModelReply(text="", calls=(ToolCall("c1", "remind_me", arguments),))


async def test_a_reminder_that_came_due_while_the_service_was_down_comes_late_and_says_so() -> None:
    house = House(
        reminds("stretch", 600), "I will", "Stretch!", tools={"remind_me": remind_me.TOOL}
    )
    async with house.lives():
        await house.room.hears("remind me")
        await house.room.sees("I will")
    house.clock.passes(hours=2)
    async with house.lives():
        await house.room.sees("Stretch!")
    said = house.script.requests[-1].messages[-1].text
    assert "stretch" in said
    assert "late" in said
    assert f"{START:%Y-%m-%d} 14:40" in said
    assert house.room.said == ["I will", "Stretch!"]


async def test_a_reminder_in_time_is_not_late_and_comes_once() -> None:
    house = House(
        reminds("stretch", 600), "I will", "Stretch!", tools={"remind_me": remind_me.TOOL}
    )
    async with house.lives():
        await house.room.hears("remind me")
        await house.room.sees("I will")
        house.clock.passes(seconds=600)
        await house.room.sees("Stretch!")
    async with house.lives():
        house.clock.passes(hours=2)
        await house.room.hears("/status")
        await house.room.sees("state: idle")
    assert "late" not in house.script.requests[-1].messages[-1].text
    assert house.room.said[:2] == ["I will", "Stretch!"]
    assert (await house.store.streams(KEY))[0].open_turn is False


async def test_a_reminder_waits_for_a_platform_that_is_not_set_up() -> None:
    house = House(
        reminds("stretch", 600), "I will", "hello", "Stretch!", tools={"remind_me": remind_me.TOOL}
    )
    async with house.lives():
        await house.room.hears("remind me")
        await house.room.sees("I will")
    house.clock.passes(seconds=601)
    home, house.room = house.room, Room("hall")
    async with house.lives():
        await house.room.hears("hi")
        await house.room.sees("hello")
        await asyncio.sleep(TIMER_SECONDS * 1.5)
    assert "ReminderDue" not in await house.events()
    house.room = home
    async with house.lives():
        await house.room.sees("Stretch!")
    assert home.said == ["I will", "Stretch!"]
