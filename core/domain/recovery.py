"""What a crash or a stop owes an open turn, and whether a state can be believed; pure."""

from collections import Counter
from datetime import datetime

from core.domain import events as ev
from core.domain.lifecycle import UNKNOWN, Draft
from core.domain.policy import Policy
from core.domain.state import SessionState


def recover(
    state: SessionState, at: datetime, reason: ev.InterruptReason, policy: Policy
) -> tuple[ev.Event, ...]:
    """() unless a turn is at work. Calls that were running and may have had an effect get the
    result «outcome unknown»; the others will run again."""
    draft = Draft(state, at, policy)
    turn, session = state.turn, state.session
    if turn is None or session is None or turn.status != "running":
        return ()
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


def faults(state: SessionState) -> tuple[str, ...]:
    """What cannot be true of a state that our own events made; () for a sound one."""
    found: list[str] = []
    turn, session = state.turn, state.session
    if turn is not None and session is None:
        found.append("a turn is open without a session")
    if turn is not None:
        ids = Counter(call.call.id for call in turn.calls)
        found += [f"call {name} stands {n} times" for name, n in ids.items() if n > 1]
        if not turn.sources:
            found.append("the turn answers nothing")
        if turn.step < 1 or min(turn.attempt, turn.resumes, turn.waits) < 0:
            found.append("the turn counts backwards")
        if turn.number != state.turns:
            found.append("the turn is not the newest")
    seqs = [source.seq for source in state.queue]
    if turn is not None:
        seqs += [source.seq for source in turn.sources]
        seqs += [call.result_seq for call in turn.calls if call.result_seq]
    if session is not None:
        seqs += [entry.seq for entry in session.entries]
        usage = session.usage
        if min(usage.prompt, usage.completion, usage.cost) < 0:
            found.append("usage is negative")
    if any(not 1 <= seq <= state.seq for seq in seqs):
        found.append("it points outside its log")
    return tuple(found)
