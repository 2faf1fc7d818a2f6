"""What may be lost for a moment is named; everything else, and everything new, is not."""

from typing import get_args

import pytest

from core.domain import events as ev
from core.domain.durability import may_lag
from core.domain.events import Event, Recorded
from core.domain.policy import Policy
from core.domain.state import SessionState
from tests.core.domain.samples import EFFECTS, HOME, START, calls, inbound, reminder
from tests.core.domain.world import World

IDS = {"look": "c1", "book": "c2", "pay": "c3"}
MESSAGE = inbound("hi", 99)

LAGS: tuple[Event, ...] = (
    ev.ModelReplied(turn=1, step=1, text="", calls=calls("pay"), effects=("unsafe",)),
    ev.ToolStarted(turn=1, step=1, call_id=IDS["look"]),
    ev.ToolFinished(turn=1, step=1, call_id=IDS["look"], outcome="ok", text="seen"),
    ev.TurnSteered(turn=1, sources=(4,)),
    ev.FilesRead(turn=1, source=4, files=()),
)
NEVER: tuple[Event, ...] = (
    ev.SessionOpened(session_id="s", reason="first"),
    ev.SessionClosed(session_id="s", reason="idle"),
    ev.SessionSuspended(session_id="s", reason="stop"),
    ev.SessionReopened(session_id="s"),
    ev.SessionSetAside(address=HOME, reference="r"),
    ev.MessageReceived(inbound=MESSAGE),
    ev.StrangerRefused(inbound=MESSAGE, told=False),
    ev.CommandAnswered(inbound=MESSAGE, command="help", text=""),
    ev.AccessChanged(platform="chat", user="7", role="allowed"),
    ev.CapNeared(limit="usd", spent=1.0, cap=1.0, address=HOME),
    ev.CapsLifted(),
    reminder("r1", START),
    ev.ReminderDue(reminder_id="r1", due_at=START, text="", address=HOME),
    ev.TurnStarted(turn=1, sources=(1,)),
    ev.TurnAttempted(turn=1, attempt=2),
    ev.TurnInterrupted(turn=1, reason="crash", since=START),
    ev.TurnWaiting(turn=1, step=1, reason="rate_limit", until=START),
    ev.TurnWoken(turn=1),
    ev.FilesLeftOut(turn=1, what="pictures"),
    ev.TurnFinished(turn=1),
    ev.TurnFailed(turn=1, reason="never", sentence=""),
    ev.TurnCancelled(turn=1, reason="stop"),
    ev.Compacted(first_turn=1),
    ev.CompactionStarted(first_turn=1, reason="too_long", address=HOME),
    ev.CompactionAttempted(attempt=1),
    ev.CompactionFailed(reason="failed"),
    ev.CompactionUndone(),
    ev.TurnUndone(turn=1),
    ev.ResultsShortened(turn=1, before=5),
    ev.ContextNarrowed(turn=1, first_turn=1, reason="too_long"),
    ev.WindowLearned(turn=1, tokens=100),
    ev.StrategyChosen(strategy="full"),
    ev.Pinned(text="my name is Ada"),
    ev.Unpinned(pin=1),
)


def acting() -> SessionState:
    """Three calls wait, one of each class, and so does a message."""
    world = World(Policy(busy_mode="steer"))
    world.says()
    world.replies("", *calls(*IDS))
    world.says("more")
    return world.state


def recorded(*events: Event, seq: int = 0) -> list[Recorded]:
    return [Recorded(number, START, event) for number, event in enumerate(events, seq + 1)]


def lags(state: SessionState, *events: Event) -> bool:
    return may_lag(state, recorded(*events, seq=state.seq))


def test_every_event_has_been_thought_about() -> None:
    assert {type(event) for event in LAGS + NEVER} == set(get_args(Event))


@pytest.mark.parametrize("event", NEVER, ids=lambda event: type(event).__name__)
def test_most_events_never_lag_alone_or_behind_one_that_may(event: Event) -> None:
    state = acting()
    assert not lags(state, event)
    assert not lags(state, LAGS[1], event)


@pytest.mark.parametrize("tool", EFFECTS)
def test_only_a_look_may_be_seen_late(tool: str) -> None:
    world = World()
    world.says()
    world.replies("", *calls(*IDS))
    for events in (world.starts, world.finishes):
        before = world.state
        assert lags(before, *events(IDS[tool])) is (EFFECTS[tool] == "read_only")


def test_a_call_that_nobody_knows_does_not_lag() -> None:
    assert not lags(acting(), ev.ToolStarted(turn=1, step=1, call_id="c9"))
    assert not lags(SessionState(key="k"), LAGS[1])


def test_the_class_is_that_of_the_newest_reply() -> None:
    """Ids repeat from step to step: c1 was a look, and pays in the next."""
    world = World()
    world.says()
    world.replies("", *calls("look"))
    world.starts("c1")
    world.finishes("c1")
    reply = ev.ModelReplied(turn=1, step=2, text="", calls=calls("pay"), effects=("unsafe",))
    start = ev.ToolStarted(turn=1, step=2, call_id="c1")
    assert lags(world.state, reply)
    assert not lags(world.state, reply, start)


def test_a_reply_that_calls_tools_may_lag_and_the_answer_may_not() -> None:
    world = World()
    world.says()
    assert lags(world.state, LAGS[0])
    assert not lags(world.state, ev.ModelReplied(turn=1, step=1, text="the answer"))


def test_a_message_that_went_into_the_turn_waits_in_the_queue_until_that_is_stored() -> None:
    world = World(Policy(busy_mode="steer"))
    world.says()
    world.replies("", *calls("look"))
    world.says("more")
    before = world.state
    world.starts("c1")
    world.finishes("c1")
    events = [one.event for one in world.log[before.seq :]]
    assert isinstance(events[-1], ev.TurnSteered)
    assert lags(before, *events)


def test_nothing_is_not_late() -> None:
    assert not lags(acting())
