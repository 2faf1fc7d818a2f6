"""The newest of what can be undone is undone, and it is said what is not."""

import pytest

from core.domain import events as ev
from tests.core.commands.running import run, summed_up, talked
from tests.core.domain.samples import HOME, calls
from tests.core.domain.world import World


def with_tools(*names: str) -> World:
    world = talked("one")
    world.says("two")
    world.replies("", *calls(*names))
    for call in calls(*names):
        world.runs(call.id)
    world.replies("done")
    return world


def shown(world: World) -> str:
    return str(world.request().messages)


def test_the_last_exchange_is_out_of_view() -> None:
    world = talked("one", "two")

    world.command("undo")

    assert world.texts[-1].startswith("Undone: our last exchange.")
    assert "one: yes" in shown(world)
    assert "two" not in shown(world)


def test_a_second_undo_takes_back_the_one_before() -> None:
    world = talked("one", "two")

    world.command("undo")
    world.command("undo")
    reply, events = run("/undo", world=world)

    assert "one" not in shown(world)
    assert reply == "There is nothing to undo here."
    assert events == ()


@pytest.mark.parametrize(
    ("world", "is_said"),
    [
        (with_tools("look"), False),
        (with_tools("pay"), True),
        (with_tools("look", "book"), True),
        (talked("three", world=with_tools("pay")), False),
    ],
    ids=["looked", "paid", "booked", "long ago"],
)
def test_what_tools_did_outside_is_said_to_stay(world: World, is_said: bool) -> None:
    reply, _ = run("/undo", world=world)

    assert ("outside is not undone" in reply) == is_said


def test_a_tool_that_was_stopped_at_work_may_have_acted() -> None:
    world = World()
    world.says("two")
    world.replies("", *calls("pay", "book"))
    world.starts("c1")
    world.command("stop")
    world.command("resume")

    assert "outside is not undone" in run("/undo", world=world)[0]


def test_a_summary_that_is_newer_than_the_last_exchange_goes_first() -> None:
    world = talked("one", "two", "three")
    summed_up(world, 3)
    assert "one: yes" not in shown(world)

    world.command("undo")

    assert world.texts[-1].startswith("Undone: the last summary. 2 older turns are back")
    assert "one: yes" in shown(world)
    assert "what was said" not in shown(world)
    assert run("/undo", world=world)[0].startswith("Undone: our last exchange.")


def test_an_exchange_that_is_newer_than_the_summary_goes_first() -> None:
    world = talked("one", "two", "three")
    summed_up(world, 3)
    talked("four", world=world)

    world.command("undo")

    assert world.texts[-1].startswith("Undone: our last exchange.")
    assert "what was said" in shown(world)
    assert run("/undo", world=world)[1] != ()


def test_turns_that_just_left_come_back() -> None:
    world = talked("one", "two")
    world.commit((ev.Compacted(first_turn=2),))

    reply, _ = run("/undo", world=world)

    assert reply.startswith("Undone: that older turns left my view. 1 older turn is back")


def test_nothing_is_undone_while_an_answer_is_in_the_making() -> None:
    world = talked("one")
    world.says("two")

    reply, events = run("/undo", world=world)

    assert "/stop" in reply
    assert events == ()


def put_aside() -> World:
    world = talked("one")
    world.says("two")
    world.command("stop")
    return world


@pytest.mark.parametrize(
    ("world", "hint"),
    [(World(), "nothing to undo"), (put_aside(), "/resume")],
    ids=["closed", "suspended"],
)
def test_where_nothing_can_be_undone_that_is_said(world: World, hint: str) -> None:
    reply, events = run("/undo", world=world)

    assert hint in reply
    assert events == ()


@pytest.mark.parametrize("reason", ["asked", "background"])
def test_a_summary_that_was_promised_and_is_given_up_is_told(reason: ev.CompactReason) -> None:
    world = talked("one " * 200, "two")
    world.commit((ev.CompactionStarted(first_turn=2, reason=reason, address=HOME),))

    reply, _ = run("/undo", world=world)

    assert ("given up" in reply) == (reason == "asked")
