"""What a crash or a stop owes an open turn, and whether a state can be believed; pure."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from core.domain import events as ev
from core.domain.draft import Draft
from core.domain.lifecycle import UNKNOWN
from core.domain.policy import Policy
from core.domain.state import SessionState


def recover(
    state: SessionState, at: datetime, reason: ev.InterruptReason, policy: Policy
) -> tuple[ev.Event, ...]:
    """() unless something is at work. Calls that were running and may have had an effect get the
    result «outcome unknown»; the others will run again."""
    draft = Draft(state, at, policy)
    turn, session = state.turn, state.session
    if reason == "shutdown":
        _take_back(draft)
    if turn is None or session is None or turn.status != "running":
        return draft.events
    for call in turn.calls:
        if call.status == "running" and call.effect == "unsafe":
            draft.add(
                ev.ToolFinished(
                    turn=turn.number,
                    step=turn.step,
                    call_id=call.call.id,
                    outcome="unknown",
                    text=UNKNOWN,
                )
            )
    since = at if reason == "shutdown" else session.updated_at
    draft.add(ev.TurnInterrupted(turn=turn.number, reason=reason, since=since))
    return draft.events


def _take_back(draft: Draft) -> None:
    """A summary that a clean stop breaks off was no attempt in vain."""
    session = draft.state.session
    wanted = session.compaction if session else None
    if wanted is not None and wanted.attempt > 0:
        draft.add(ev.CompactionAttempted(attempt=wanted.attempt - 1))


def faults(state: SessionState) -> tuple[str, ...]:
    """What cannot be true of a state that our own events made; () for a sound one."""
    found = [*_turn_faults(state), *_session_faults(state)]
    if not 0 <= state.turns <= state.seq:
        found.append("turns are miscounted")
    if any(not 1 <= seq <= state.seq for seq in _places(state)):
        found.append("it points outside its log")
    return tuple(found)


def _turn_faults(state: SessionState) -> Iterable[str]:
    turn = state.turn
    if turn is None:
        return
    if state.session is None:
        yield "a turn is open without a session"
    ids = Counter(call.call.id for call in turn.calls)
    yield from (f"call {name} stands {n} times" for name, n in ids.items() if n > 1)
    if not turn.sources:
        yield "the turn answers nothing"
    if turn.step < 1 or min(turn.attempt, turn.resumes, turn.waits) < 0:
        yield "the turn counts backwards"
    if turn.number != state.turns:
        yield "the turn is not the newest"


def _session_faults(state: SessionState) -> Iterable[str]:
    for session in (state.session, state.previous):
        if session is None:
            continue
        usage = session.usage
        if min(usage.prompt, usage.completion, usage.cost) < 0:
            yield "usage is negative"
        if min(session.settled, session.window, session.refused_tokens, session.overhead) < 0:
            yield "the context is smaller than nothing"
        if session.compaction is not None and session.compaction.attempt < 0:
            yield "a compaction counts backwards"
        if max([session.last_turn, *(entry.turn for entry in session.entries)]) > state.turns:
            yield "a session knows turns that never were"


def _places(state: SessionState) -> Iterable[int]:
    """Every event that the state points to."""
    yield from (source.seq for source in state.queue)
    yield from (pin.seq for pin in state.pins)
    for session in (state.session, state.previous):
        if session is not None:
            yield from (entry.seq for entry in (*session.entries, *session.replaced))
    if state.turn is not None:
        yield from (source.seq for source in state.turn.sources)
        yield from (call.result_seq for call in state.turn.calls if call.result_seq)
