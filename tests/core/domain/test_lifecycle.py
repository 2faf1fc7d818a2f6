"""How sessions end and come back, as the person in the chat sees it."""

from datetime import time

import pytest

from core.domain import events as ev
from core.domain.policy import Policy
from core.domain.state import Phase
from tests.core.domain.samples import calls
from tests.core.domain.world import World

HOUR = 3600.0
DAY = 24 * HOUR


def kinds(events: tuple[ev.Event, ...]) -> list[str]:
    return [type(event).__name__ for event in events]


def talked() -> World:
    world = World()
    world.says("my name is Ada")
    world.replies("Hello Ada")
    return world


def texts(world: World) -> str:
    return "\n".join(message.text for message in world.request().messages)


def test_the_message_after_a_long_silence_is_answered_in_a_new_session_and_told_once() -> None:
    world = talked()
    first = world.session_id
    world.passes(DAY)

    world.says("are you there?")
    world.replies("yes")
    world.says("good")

    assert world.session_id != first
    assert world.state.session
    assert world.state.session.parent == first
    assert [text for text in world.texts if "/resume" in text] == [world.texts[1]]
    assert "are you there?" in texts(world)
    assert "Ada" not in texts(world)
    assert set(world.ledger.values()) == {"answered"}


def test_the_clock_closes_an_idle_session_silently_and_the_next_message_tells() -> None:
    world = talked()
    world.passes(DAY)

    assert kinds(world.expires()) == ["SessionClosed"]
    assert world.expires() == ()
    assert world.texts == ["Hello Ada"]
    world.says("back")
    assert "/resume" in world.texts[1]


def test_one_second_less_is_not_idle() -> None:
    world = talked()
    world.passes(DAY - 1)

    assert world.expires() == ()


def test_an_answer_is_no_activity() -> None:
    world = World()
    world.says("a long task")
    world.passes(DAY - 1)
    world.replies("done")
    world.passes(1)

    assert kinds(world.expires()) == ["SessionClosed"]


def test_no_session_expires_under_an_open_turn() -> None:
    world = World()
    world.says("a very long task")
    world.passes(3 * DAY)

    assert world.expires() == ()
    world.says("how is it going?")
    world.replies("done")
    assert world.state.phase is Phase.THINKING
    assert "a very long task" in texts(world)


def test_a_new_day_begins_at_the_operators_hour() -> None:
    world = World(Policy(daily_reset_at=time(4), idle_reset=None))
    world.says()
    world.replies("hi")
    world.passes(13.4 * HOUR)
    assert world.expires() == ()
    world.passes(0.1 * HOUR)

    world.says("good morning")

    assert "new day" in world.texts[1]


def test_suspended_goes_before_interrupted_and_expired() -> None:
    world = talked()
    world.says("something long")
    world.shuts_down()
    world.command("stop")
    world.passes(2 * DAY)

    world.says("next")

    closed = [one.event for one in world.log if isinstance(one.event, ev.SessionClosed)]
    assert [event.reason for event in closed] == ["suspended"]
    assert not [text for text in world.texts if "quiet" in text]


def test_interrupted_goes_before_expired() -> None:
    world = talked()
    first = world.session_id
    world.says("something long")
    world.shuts_down()
    world.passes(2 * DAY)

    assert world.expires() == ()
    world.attempts()
    world.replies("done")

    assert world.session_id == first
    assert "Hello Ada" in texts(world)


def test_resume_after_a_stop_goes_on_where_it_was() -> None:
    world = talked()
    world.says("tell me more")
    world.command("stop")
    world.passes(2 * DAY)

    world.command("resume")
    world.says("go on")

    assert "my name is Ada" in texts(world)
    assert "tell me more" in texts(world)


def test_resume_swaps_the_two_newest_sessions_back_and_forth() -> None:
    world = talked()
    first = world.session_id
    world.command("new")
    second = world.session_id
    world.says("my name is Bo")
    world.replies("Hello Bo")

    world.command("resume")
    assert world.session_id == first
    assert "Ada" in texts(world)
    assert "Bo" not in texts(world)
    world.command("resume")
    assert world.session_id == second
    assert "Bo" in texts(world)


def test_resume_brings_an_expired_session_back_for_good() -> None:
    world = talked()
    first = world.session_id
    world.passes(2 * DAY)

    world.command("resume")
    world.says("still there?")

    assert world.session_id == first


def test_resume_has_nothing_to_go_back_to_at_first() -> None:
    world = World()
    world.command("resume")

    assert "no earlier conversation" in world.texts[0]


def test_usage_goes_on_from_where_it_was() -> None:
    world = talked()
    world.crashes()
    world.says("more")
    world.replies("yes")

    assert world.state.session
    assert world.state.session.usage.total == 30
    assert world.state.session.usage.cost == pytest.approx(0.5)


def test_the_stop_says_what_was_done_what_may_be_done_and_what_was_not() -> None:
    world = World()
    world.says("book, pay, look")
    world.replies("", *calls("book", "pay", "look"))
    world.runs("c1")
    world.starts("c2")

    world.command("stop")

    assert world.texts[-1].startswith(
        "Stopped at step 1. Done: book. Started, outcome unknown: pay. Not done: look."
    )
    assert "/resume" in world.texts[-1]
    assert "/retry" in world.texts[-1]


def test_what_waits_at_a_stop_is_answered_in_a_new_session() -> None:
    world = talked()
    first = world.session_id
    world.says("something long")
    world.says("and this")
    world.says("and that")

    world.command("stop")
    world.replies("both done")

    assert world.session_id != first
    assert "goes on in a new conversation" in world.texts[1]
    assert world.ledger == {
        "u1": "answered",
        "u2": "discarded",
        "u3": "answered",
        "u4": "answered",
        "u5": "answered",
    }


def test_a_context_that_is_full_loses_its_oldest_turns_and_says_so() -> None:
    world = World(Policy(strategy="full", context_entries=6))
    for number in range(8):
        world.says(f"message {number}")
        world.replies(f"answer {number}")

    told = [
        text for text in world.texts if "older part of this conversation is out of my view" in text
    ]
    assert told, "a conversation that forgets must say so"
    assert "message 0" not in texts(world)
    assert "message 7" in texts(world)


def test_a_full_context_is_cut_seldom() -> None:
    world = World(Policy(strategy="window", context_window=800))
    for number in range(100):
        world.says(f"message {number} " + "x" * 60)
        world.replies(f"answer {number} " + "x" * 60)

    cuts = world.reached["Compacted"]
    assert 0 < cuts <= 25, "what is kept has to leave room for several messages"
    assert not [text for text in world.texts if "out of my view" in text], "it is what was wished"


def test_a_flood_of_messages_is_no_reason_to_forget_what_still_fits() -> None:
    world = World(Policy(strategy="window", context_window=533))
    world.says("my name is Ada")
    world.says("x" * 1700)
    world.replies("Hello Ada")

    assert "my name is Ada" in texts(world)
    assert not [text for text in world.texts if "out of my view" in text]
