"""What is pinned stays, is numbered, and can be let go."""

import pytest

from core.domain import events as ev
from core.domain.policy import Policy
from tests.core.commands.running import run
from tests.core.domain.world import World


def pinned(*texts: str) -> World:
    world = World()
    for text in texts:
        world.command("pin", text)
    return world


@pytest.mark.parametrize(
    ("text", "quote", "kept"),
    [
        ("/pin I am a vegetarian ", "", "I am a vegetarian"),
        ("/pin", " the plan:\n1. go ", "the plan:\n1. go"),
        ("/pin mine", "theirs", "mine"),
    ],
    ids=["text", "reply", "text in a reply"],
)
def test_a_pin_is_a_text_or_what_is_replied_to(text: str, quote: str, kept: str) -> None:
    reply, events = run(text, quote=quote)

    assert events == (ev.Pinned(text=kept),)
    assert "number 1" in reply


def test_pins_are_in_the_next_request_and_in_that_of_the_next_conversation() -> None:
    world = pinned("I am a vegetarian")

    world.says("hello")
    before = world.request()
    world.command("new")
    world.says("hello again")

    assert "I am a vegetarian" in str(before)
    assert "I am a vegetarian" in str(world.request())


@pytest.mark.parametrize(
    ("text", "world", "hint"),
    [
        ("/pin", World(), "as a reply to a message"),
        ("/pin " + "x" * 1_001, World(), "1,000 at most"),
        ("/pin b", pinned("a", "b"), "already, as number 2"),
        ("/pin z", pinned(*map(str, range(20))), "There are 20 pins"),
    ],
    ids=["nothing", "too long", "twice", "too many"],
)
def test_what_cannot_be_pinned_is_told(text: str, world: World, hint: str) -> None:
    reply, events = run(text, world=world)

    assert hint in reply
    assert events == ()


def test_pins_leave_most_of_a_small_window_to_the_talk() -> None:
    world = World(Policy(context_window=1_000))
    for _ in range(20):
        world.says("go on")
        world.replies("I do")
        world.command("pin", f"{len(world.state.pins)}" + "\u99c5" * 150)

    assert 0 < len(world.state.pins) < 3
    assert "quarter" in world.texts[-1]
    world.command("unpin", "all")
    assert world.command("pin", "short") != ()
    assert "Pinned" in world.texts[-1]


def test_the_limits_themselves_are_allowed() -> None:
    assert run("/pin " + "x" * 1_000)[1] != ()
    assert run("/pin z", world=pinned(*map(str, range(19))))[1] != ()


def test_pins_are_listed_with_their_numbers_each_on_one_line() -> None:
    reply, events = run("/pins", world=pinned("one", "two\nlines", "x" * 900))

    assert "1. one\n2. two lines\n3. xxx" in reply
    assert len(reply) < 400
    assert events == ()


@pytest.mark.parametrize("text", ["/pins", "/unpin 1"])
def test_no_pins_are_told(text: str) -> None:
    reply, events = run(text)

    assert reply.startswith("Nothing is pinned.")
    assert events == ()


def test_a_pin_is_let_go_by_its_number_and_the_others_move_up() -> None:
    world = pinned("one", "two", "three")

    world.command("unpin", "2")

    assert [pin.text for pin in world.state.pins] == ["one", "three"]
    assert "2 left" in world.texts[-1]
    assert "2. three" in run("/pins", world=world)[0]


def test_all_are_let_go_at_once() -> None:
    world = pinned("one", "two")

    world.command("unpin", "ALL")

    assert world.state.pins == ()
    assert world.texts[-1] == "All 2 are not pinned any more."


@pytest.mark.parametrize("which", ["", "0", "3", "-1", "two", "1 2"])
def test_a_number_that_is_none_lets_nothing_go(which: str) -> None:
    reply, events = run(f"/unpin {which}", world=pinned("one", "two"))

    assert "from 1 to 2" in reply
    assert events == ()
