"""Which events may be on disk a moment late; pure, and what nobody thought of may never."""

from collections.abc import Iterable

from core.domain import events as ev
from core.domain.fold import apply
from core.domain.state import SessionState


def may_lag(before: SessionState, log: Iterable[ev.Recorded]) -> bool:
    """Whether losing all of these events costs no more than asking the model and looking again.

    False for no events at all: whoever stores nothing wants the lease, or a snapshot.
    """
    state = before
    for recorded in log:
        if not _may_lag(state, recorded.event):
            return False
        state = apply(state, recorded)
    return state is not before


def _may_lag(state: SessionState, event: ev.Event) -> bool:
    match event:
        case ev.ModelReplied(calls=calls):
            return bool(calls)
        case ev.ToolStarted(call_id=call_id) | ev.ToolFinished(call_id=call_id):
            return _only_looks(state, call_id)
        case ev.TurnSteered() | ev.FilesRead():
            return True
        case _:
            return False


def _only_looks(state: SessionState, call_id: str) -> bool:
    calls = state.turn.calls if state.turn else ()
    return any(call.call.id == call_id and call.effect == "read_only" for call in calls)
