"""What follows from an input, as the person in the chat sees it."""

from datetime import timedelta

import pytest

from core.domain import events as ev
from core.domain.messages import FailureKind, ToolCall
from core.domain.policy import BusyMode, Policy
from core.domain.state import Phase
from tests.core.domain.samples import HOME, calls, reminder
from tests.core.domain.world import World


def users(world: World) -> list[str]:
    return [m.text for m in world.request().messages if type(m).__name__ == "UserMessage"]


def roles(world: World) -> list[str]:
    names = [type(message).__name__ for message in world.request().messages]
    return [name.removesuffix("Message").lower() for name in names]


def at_work(mode: BusyMode) -> World:
    """A turn with one tool at work and two messages that came meanwhile."""
    world = World(Policy(busy_mode=mode))
    world.says("one")
    world.replies("", *calls("look"))
    world.starts("c1")
    world.says("two")
    world.says("three")
    return world


def test_messages_that_come_meanwhile_become_the_next_turn_in_order() -> None:
    world = at_work("queue")
    world.finishes("c1")
    world.replies("answer to one")

    assert users(world)[-1] == "two\n\nthree"
    world.replies("answer to both")
    assert world.texts == ["answer to one", "answer to both"]
    assert set(world.ledger.values()) == {"answered"}


def test_steering_messages_follow_the_results_of_the_step() -> None:
    world = at_work("steer")
    world.finishes("c1")

    assert roles(world) == ["system", "user", "assistant", "tool", "user"]
    assert users(world)[-1] == "two\n\nthree"
    world.replies("one answer")
    assert world.texts == ["one answer"]


def test_a_message_interrupts_the_turn_and_is_answered_instead() -> None:
    world = at_work("interrupt")

    assert world.ledger == {"u1": "discarded", "u2": "discarded"}
    world.replies("answer to three")
    assert [text for text in world.texts if "new message instead" in text]
    assert world.ledger == {"u1": "discarded", "u2": "discarded", "u3": "answered"}


@pytest.mark.parametrize("kind", ["try_again", "never", "refused"])
def test_whatever_ends_a_turn_the_next_message_is_not_lost(kind: FailureKind) -> None:
    world = World()
    world.says("one")
    world.says("two")

    world.fails(kind)
    world.replies("answer to two")

    assert world.ledger == {"u1": "failed", "u2": "answered"}
    assert world.texts[-1] == "answer to two"


def test_a_failure_is_said_once_with_its_reference_and_the_way_on() -> None:
    world = World()
    world.says("one")
    world.fails("never", error_id="e77")

    assert len(world.texts) == 1
    assert "e77" in world.texts[0]
    assert "/retry" in world.texts[0]
    assert "boom" not in world.texts[0]


def test_what_the_provider_refused_does_not_become_history() -> None:
    world = World()
    world.says("something bad")
    world.fails("refused")
    world.says("something good")

    assert users(world) == ["something good"]


def test_too_long_gives_up_the_older_half_and_only_then_fails() -> None:
    world = World(Policy(strategy="full"))
    for number in range(4):
        world.says(f"message {number}")
        world.replies(f"answer {number}")
    world.says("the last")

    world.fails("too_long")
    left = users(world)
    world.fails("too_long")
    world.fails("too_long")
    bare = users(world)
    world.fails("too_long")

    assert left == ["message 2", "message 3", "the last"]
    assert bare == ["the last"]
    assert world.state.turn is None
    assert "too long" in world.texts[-1]
    assert "/new" in world.texts[-1]
    world.says("shorter")
    assert users(world) == ["message 0", "message 1", "message 2", "message 3", "shorter"]


def test_a_model_that_finds_everything_too_long_is_asked_a_few_times_and_no_more() -> None:
    world = World(Policy(strategy="full"))
    for number in range(64):
        world.says(f"message {number}")
        world.replies(f"answer {number}")
    world.says("the last")

    asked = 0
    while world.state.phase is Phase.THINKING:
        world.fails("too_long")
        asked += 1

    assert asked <= 8, "the half of it each time"
    assert not [text for text in world.texts if "out of my view" in text]
    assert "/new" in world.texts[-1]


def test_a_rate_limit_is_waited_for_and_told() -> None:
    world = World()
    world.says("hello")
    world.fails("try_again", retry_after=30)

    assert world.state.phase is Phase.WAITING
    assert "rate limit" in world.texts[0]
    assert "14:30:30" in world.texts[0]
    world.passes(29)
    assert world.wakes() == ()
    world.passes(1)
    world.wakes()
    world.replies("hi")
    assert world.texts[-1] == "hi"


def test_a_rate_limit_of_hours_or_without_end_fails_the_turn() -> None:
    world = World()
    world.says("hello")
    world.fails("try_again", retry_after=5 * 3600)
    assert world.ledger == {"u1": "failed"}

    world.says("again")
    for _ in range(5):
        world.fails("try_again", retry_after=1)
        world.passes(1)
        world.wakes()
    world.fails("try_again", retry_after=1)
    assert world.ledger == {"u1": "failed", "u2": "failed"}


def test_a_long_task_with_progress_may_wait_as_often_as_it_must() -> None:
    world = World()
    world.says("a long task")
    for _ in range(10):
        world.fails("try_again", retry_after=1)
        world.passes(1)
        world.wakes()
        world.replies("", *calls("look"))
        world.runs("c1")
    world.replies("done")

    assert world.ledger == {"u1": "answered"}


def test_a_turn_ends_at_its_step_cap_and_can_go_on() -> None:
    world = World(Policy(turn_max_steps=2))
    world.says("loop")
    world.replies("", *calls("look"))
    world.runs("c1")
    world.replies("", *calls("pay"))

    assert world.state.phase is Phase.IDLE
    assert "limit of steps" in world.texts[0]
    assert "Not done: pay" in world.texts[0]
    world.says("go on")
    assert roles(world)[-1] == "user"


def test_retry_answers_a_failed_message_anew() -> None:
    world = World()
    world.says("one")
    world.fails("never")

    world.command("retry")
    world.replies("now it works")

    assert users(world) == ["one"]
    assert world.ledger == {"u1": "answered", "u2": "answered"}


def test_retry_after_a_stop_goes_on_in_the_old_session() -> None:
    world = World()
    world.says("one")
    world.replies("answer one")
    first = world.session_id
    world.says("two")
    world.command("stop")

    world.command("retry")

    assert world.session_id == first
    assert users(world) == ["one", "two"]


def test_retry_replaces_an_answer_that_was_given() -> None:
    world = World()
    world.says("one")
    world.replies("a bad answer")

    world.command("retry")
    assert roles(world) == ["system", "user"]
    world.replies("a better one")

    assert world.texts[-1] == "a better one"
    assert world.ledger["u1"] == "answered"


def test_a_reminder_opens_a_turn_and_says_how_late_it_is() -> None:
    world = World()
    world.says("remind me")
    world.replies("", *calls("book"))
    world.starts("c1")
    due = world.now + timedelta(minutes=10)
    world.finishes("c1", events=(reminder("r1", due),))
    world.replies("I will")
    assert world.reminds("r1") == ()

    world.passes(2 * 3600)
    world.reminds("r1")

    assert "stretch" in users(world)[-1]
    assert "6600 s late" in users(world)[-1]
    world.replies("Stretch!")
    assert world.said[-1].address == HOME
    assert world.reminds("r1") == ()


def test_a_reminder_rings_in_a_session_of_its_own_when_the_old_one_is_over() -> None:
    world = World()
    world.says("remind me")
    world.replies("", *calls("book"))
    world.starts("c1")
    world.finishes("c1", events=(reminder("r1", world.now + timedelta(hours=30)),))
    world.replies("I will")
    world.passes(24 * 3600)
    world.expires()
    world.passes(6 * 3600)

    world.reminds("r1")
    world.replies("Stretch!")

    assert world.texts[-1] == "Stretch!"
    assert [text for text in world.texts if "/resume" in text], "the reset is said, with a way back"


def test_a_reset_that_a_reminder_finds_is_said_too() -> None:
    world = World()
    world.says("remind me")
    world.replies("", *calls("book"))
    world.starts("c1")
    world.finishes("c1", events=(reminder("r1", world.now + timedelta(hours=30)),))
    world.replies("I will")
    world.passes(30 * 3600)

    world.reminds("r1")

    assert [text for text in world.texts if "/resume" in text], "the reset is said, with a way back"


def test_ids_that_the_model_repeats_or_forgets_become_ids_of_our_own() -> None:
    world = World()
    world.says("do it all")
    world.replies("", *(ToolCall(name, "look", "{}") for name in ("a", "a", "", "call_1_1_3")))

    assert len({call[2] for call in world.witness.open}) == 4


def test_an_empty_answer_is_said_to_be_empty_and_a_cut_one_to_be_cut() -> None:
    world = World()
    world.says("one")
    world.replies("  ")
    world.says("two")
    world.replies("half of", cut=True)

    assert "no text" in world.texts[0]
    assert world.texts[1].startswith("half of\n")
    assert "Cut" in world.texts[1]


def test_a_stranger_is_told_once_a_day() -> None:
    world = World()
    world.a_stranger_says()
    world.a_stranger_says()
    assert len(world.texts) == 1
    world.passes(24 * 3600)

    world.a_stranger_says()

    assert len(world.texts) == 2
    assert set(world.ledger.values()) == {"discarded"}


def test_an_answer_goes_where_the_newest_message_came_from() -> None:
    world = World()
    elsewhere = ev.Address(platform="chat", account="bot", chat="7", thread="9", reply_to="33")
    world.says("one")
    world.says("two", address=elsewhere)
    world.replies("to one")
    world.replies("to two")

    assert [said.address for said in world.said] == [HOME, elsewhere]


def test_a_refusal_is_tried_once_without_what_stands_before_and_nothing_is_lost() -> None:
    world = World()
    world.says("something that offends")
    world.replies("an answer")
    world.says("harmless")
    world.fails("refused")

    assert users(world) == ["harmless"]
    world.replies("now it works")
    assert world.texts[-1].startswith("now it works\n\n_(The model's provider refused this")
    world.says("and then?")
    assert users(world) == ["something that offends", "harmless", "and then?"]


def test_what_makes_two_answers_in_a_row_impossible_leaves() -> None:
    world = World()
    world.says("something that offends")
    world.replies("an answer")
    for text in ("harmless", "harmless too"):
        world.says(text)
        world.fails("refused")
        world.replies("now it works")

    assert sum("out of my view" in text for text in world.texts) == 1
    world.says("and then?")
    assert users(world) == ["harmless too", "and then?"]


def test_a_message_that_is_refused_alone_says_nothing_of_what_stands_before() -> None:
    world = World()
    world.says("one")
    world.replies("an answer")
    for text in ("two", "three"):
        world.says(text)
        world.fails("refused")
        world.fails("refused")
        assert world.turn == 0
        assert "/new" in world.texts[-1]

    world.says("four")
    world.fails("refused")
    world.replies("now it works")
    world.says("five")
    assert users(world) == ["one", "four", "five"]


def test_a_context_that_has_to_shrink_again_and_again_is_said_once() -> None:
    world = World(Policy(strategy="full"))
    for number in range(9):
        world.says(f"message {number}")
        world.replies("answer")
    world.says("the last")
    for _ in range(4):
        world.fails("too_long")
    world.replies("now it works")

    assert sum("without the older part" in text for text in world.texts) == 1


def test_what_ran_before_a_crash_is_never_listed_as_not_done() -> None:
    world = World()
    world.says("book it")
    world.replies("", *calls("book"))
    world.starts("c1")
    world.crashes()
    world.command("stop")

    assert "Started, outcome unknown: book." in world.texts[-1]
