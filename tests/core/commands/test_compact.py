"""A summary is asked for, or it is said why there is none to make."""

import pytest

from core.domain import events as ev
from core.domain.policy import Policy
from tests.core.commands.running import run, talked
from tests.core.domain.samples import HOME
from tests.core.domain.world import World

SMALL = Policy(context_window=200, strategy="full")
"""Its newest turns may have 50 tokens, and nothing is summed up unasked."""


def long_one() -> World:
    return talked("one " * 20, "two " * 20, "three " * 20, world=World(SMALL))


def test_older_turns_are_to_be_summed_up() -> None:
    reply, events = run("/compact the  prices", world=long_one())

    assert events == (
        ev.CompactionStarted(first_turn=3, reason="asked", address=HOME, keep="the  prices"),
    )
    assert "2 older turns" in reply
    assert "what you named" in reply


def test_it_may_be_asked_for_while_an_answer_is_in_the_making() -> None:
    world = long_one()
    world.says("four")

    reply, events = run("/compact", world=world)

    assert [type(event) for event in events] == [ev.CompactionStarted]
    assert "named" not in reply


def test_one_that_is_under_way_is_not_begun_again() -> None:
    world = long_one()
    world.command("compact")

    reply, events = run("/compact", world=world)

    assert "already" in reply
    assert events == ()


def put_aside() -> World:
    world = long_one()
    world.says("four")
    world.command("stop")
    return world


@pytest.mark.parametrize(
    ("text", "world", "hint"),
    [
        ("/compact", World(), "no conversation is open"),
        ("/compact", put_aside(), "/resume"),
        ("/compact", talked("one", "two"), "nothing to sum up yet"),
        ("/compact", talked("one " * 50, world=World(SMALL)), "nothing to sum up yet"),
        ("/compact " + "x" * 1_001, long_one(), "at most 1000 characters"),
    ],
    ids=["closed", "suspended", "short", "one long turn", "too much to keep"],
)
def test_where_there_is_nothing_to_do_that_is_said(text: str, world: World, hint: str) -> None:
    reply, events = run(text, world=world)

    assert hint in reply
    assert events == ()
