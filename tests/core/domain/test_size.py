"""What a session costs must not grow with its age."""

from collections.abc import Callable, Iterator

import msgspec
import pytest

from core.domain import inputs as ask
from core.domain.decide import decide
from core.domain.events import Recorded
from core.domain.fold import fold
from core.domain.messages import ModelReply
from core.domain.policy import Policy
from core.domain.state import SessionState
from tests.core.domain.samples import KEY, START, calls, inbound

TURNS = 3_000
EARLY = 100
CYCLE = 50
"""Turns within which the context is cut at least once."""


def turn_inputs(turn: int) -> Iterator[ask.Input]:
    yield ask.Receive(at=START, inbound=inbound(f"message {turn:06}", turn))
    wordless = ModelReply(text="", calls=calls("look"))
    yield ask.Reply(at=START, turn=turn, step=1, reply=wordless, effects=("read_only",))
    yield ask.StartTool(at=START, turn=turn, step=1, call_id="c1")
    yield ask.FinishTool(at=START, turn=turn, step=1, call_id="c1", outcome="ok", text="found")
    yield ask.Reply(at=START, turn=turn, step=2, reply=ModelReply(text=f"answer {turn:06}"))


def summed_up(state: SessionState) -> Iterator[ask.Input]:
    wanted = state.session.compaction if state.session else None
    if wanted is not None:
        yield ask.Compact(at=START)
        yield ask.Summarize(at=START, first_turn=wanted.first_turn, summary="in short")


def never_summed_up(state: SessionState) -> Iterator[ask.Input]:
    wanted = state.session.compaction if state.session else None
    if wanted is not None:
        yield ask.NotSummarized(at=START, first_turn=wanted.first_turn, error_id="e")


Between = Callable[[SessionState], Iterator[ask.Input]]


def sizes(turns: int, between: Between) -> list[int]:
    """Of the encoded state after each turn."""
    state, found = SessionState(key=KEY), list[int]()
    policy = Policy(context_window=2_000, context_entries=60)
    for turn in range(1, turns + 1):
        for wish in (*turn_inputs(turn), *between(state)):
            events = decide(state, wish, policy)
            numbered = enumerate(events, state.seq + 1)
            state = fold(state, [Recorded(seq, START, event) for seq, event in numbered])
        found.append(len(msgspec.json.encode(state)))
    assert state.seq > turns * 8
    return found


@pytest.mark.parametrize("between", [summed_up, never_summed_up])
def test_a_snapshot_is_as_large_after_three_thousand_turns_as_after_a_hundred(
    between: Between,
) -> None:
    found = sizes(TURNS, between)

    early, late = max(found[EARLY - CYCLE : EARLY]), max(found[-CYCLE:])
    assert late < 1.2 * early
