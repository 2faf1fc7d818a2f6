"""What a crash owes a turn, and which states are not to be believed."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from core.domain.events import TurnFailed
from core.domain.messages import Usage
from core.domain.policy import Policy
from core.domain.recovery import faults
from core.domain.state import Entry, Phase, SessionState
from tests.core.domain.samples import calls
from tests.core.domain.world import World


def crash_looping(policy: Policy) -> World:
    world = World(policy)
    world.says("the message that kills")
    while world.state.turn is not None:
        world.comes_back()
    return world


def test_a_turn_that_kills_the_process_is_put_aside_after_five_attempts() -> None:
    world = crash_looping(Policy())

    assert world.witness.attempt == 5
    assert world.state.phase is Phase.SUSPENDED
    assert "broke off 5 times" in world.texts[-1]
    assert world.ledger == {"u1": "failed"}
    world.says("hello again")
    world.replies("hello")
    assert world.ledger == {"u1": "failed", "u2": "answered"}
    assert "the message that kills" not in str(world.request())


def test_what_waits_behind_a_turn_that_kills_is_answered() -> None:
    world = World(Policy(turn_max_attempts=2))
    world.says("the message that kills")
    world.says("are you there?")
    for _ in range(2):
        world.comes_back()

    world.replies("yes")

    assert world.ledger == {"u1": "failed", "u2": "answered"}


def test_a_task_that_is_interrupted_too_often_is_put_aside_with_the_true_reason() -> None:
    world = World()
    world.says("a long task")
    for _ in range(21):
        world.replies("", *calls("look"))
        world.runs("c1")
        world.comes_back()

    assert world.state.phase is Phase.SUSPENDED
    assert "interrupted 20 times" in world.texts[-1]
    assert "without getting any further" not in world.texts[-1]


def test_a_long_task_lives_through_many_deploys() -> None:
    world = World()
    world.says("a long task")
    for _ in range(19):
        world.replies("", *calls("look"))
        world.runs("c1")
        world.comes_back()

    world.replies("done")

    assert world.texts[-1] == "done"


def test_no_turn_is_resumed_more_than_twenty_times() -> None:
    world = World()
    world.says("an endless task")
    for _ in range(20):
        world.replies("", *calls("look"))
        world.runs("c1")
        world.comes_back()
    assert world.state.turn is not None

    world.comes_back()

    assert isinstance(world.log[-2].event, TurnFailed)
    assert world.state.phase is Phase.SUSPENDED


def test_a_state_of_our_own_making_has_no_faults() -> None:
    world = World()
    world.says("hello")
    world.replies("", *calls("look"))

    assert faults(world.state) == ()


def _overdrawn(state: SessionState) -> SessionState:
    assert state.session
    return replace(state, session=replace(state.session, usage=Usage(prompt=-1)))


def _beyond(state: SessionState) -> SessionState:
    assert state.session
    far = (Entry(state.seq + 1, "user", 1, 1),)
    return replace(state, session=replace(state.session, entries=far))


def _twice(state: SessionState) -> SessionState:
    assert state.turn
    return replace(state, turn=replace(state.turn, calls=state.turn.calls * 2))


def _homeless(state: SessionState) -> SessionState:
    return replace(state, session=None)


def _aimless(state: SessionState) -> SessionState:
    assert state.turn
    return replace(state, turn=replace(state.turn, sources=()))


@pytest.mark.parametrize("spoil", [_overdrawn, _beyond, _twice, _homeless, _aimless])
def test_a_state_that_cannot_be_is_not_believed(
    spoil: Callable[[SessionState], SessionState],
) -> None:
    world = World()
    world.says("hello")
    world.replies("", *calls("look"))

    assert faults(spoil(world.state)) != ()
