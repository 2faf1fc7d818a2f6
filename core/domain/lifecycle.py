"""How sessions and turns begin and end; pure moves that decisions and commands are made of."""

from datetime import UTC, datetime, timedelta

from core.domain import events as ev
from core.domain.draft import Draft
from core.domain.keys import Address, session_id
from core.domain.messages import ToolOutcome
from core.domain.policy import Policy
from core.domain.room import make_room
from core.domain.state import Call, Phase, Session, SessionState, Turn

STOPPED = "Stopped before it was finished; what it did is not known. Check before you repeat it."
NOT_STARTED = "Stopped before it was started; nothing was done."
UNKNOWN = "Interrupted, outcome unknown; check before you repeat it."


def expiry(state: SessionState, at: datetime, policy: Policy) -> ev.CloseReason | None:
    """Why the open session is over at that time; suspended goes before idle and daily.

    Only a user's message counts as activity, and a session with an open turn is never over.
    """
    session = state.session
    if session is None or state.turn is not None or state.queue:
        return None
    if session.suspended:
        return "suspended"
    due = idle_due(session, policy)
    if due is not None and due <= at:
        return "idle"
    due = daily_due(session, policy)
    return "daily" if due is not None and due <= at else None


def idle_due(session: Session, policy: Policy) -> datetime | None:
    if policy.idle_reset is None:
        return None
    return _last_activity(session) + timedelta(seconds=policy.idle_reset)


def daily_due(session: Session, policy: Policy) -> datetime | None:
    """The first daily reset after the last user's message."""
    if policy.daily_reset_at is None:
        return None
    since = _last_activity(session).astimezone(UTC)
    due = datetime.combine(since.date(), policy.daily_reset_at, UTC)
    return due if due > since else due + timedelta(days=1)


def _last_activity(session: Session) -> datetime:
    return session.last_user_at or session.opened_at


def close_if_over(draft: Draft) -> None:
    reason = expiry(draft.state, draft.at, draft.policy)
    if reason is not None and draft.state.session is not None:
        draft.add(ev.SessionClosed(session_id=draft.state.session.session_id, reason=reason))


def open_session(draft: Draft, reason: ev.OpenReason, address: Address | None = None) -> None:
    """Opens the next run under the key; its parent is the one before, if there was one."""
    state = draft.state
    draft.add(
        ev.SessionOpened(
            session_id=session_id(state.key, state.seq + 1, draft.at),
            reason=reason,
            parent=state.previous.session_id if state.previous else "",
            model=draft.policy.model,
            address=address,
        )
    )


def ensure_session(draft: Draft, address: Address, opener: ev.OpenReason | None = None) -> None:
    """After this a session is open and not suspended."""
    close_if_over(draft)
    if draft.state.session is not None:
        return
    open_session(draft, opener or draft.state.closed_reason or "first", address)


def start_next(draft: Draft) -> None:
    """All that waits becomes the next turn's input, in order; nothing happens if a turn is open.
    With an album in it the turn is not begun yet: the rest of the pictures is about to come."""
    queue = draft.state.queue
    if not queue or draft.state.turn is not None:
        return
    _leave_suspended(draft)
    ensure_session(draft, queue[-1].address)
    make_room(draft)
    number = draft.state.turns + 1
    draft.add(ev.TurnStarted(turn=number, sources=tuple(source.seq for source in queue)))
    if not any(source.album for source in queue):
        draft.add(ev.TurnAttempted(turn=number, attempt=1))


def _leave_suspended(draft: Draft) -> None:
    session = draft.state.session
    if session is not None and session.suspended:
        draft.add(ev.SessionClosed(session_id=session.session_id, reason="suspended"))


def retry_last(draft: Draft) -> bool:
    """Answers the newest exchange anew; False where there is none."""
    session = draft.state.session
    if draft.state.turn is not None or session is None or not session.last_sources:
        return False
    if session.suspended:
        draft.add(ev.SessionReopened(session_id=session.session_id))
    number = draft.state.turns + 1
    sources = tuple(source.seq for source in session.last_sources)
    draft.add(
        ev.TurnStarted(turn=number, sources=sources, retry=True),
        ev.TurnAttempted(turn=number, attempt=1),
    )
    return True


def close_calls(draft: Draft) -> None:
    """Gives each open call of the turn its result: after this none waits."""
    turn = draft.state.turn
    for call in turn.open_calls if turn else ():
        risky = may_have_acted(call)
        draft.add(
            ev.ToolFinished(
                turn=turn.number if turn else 0,
                step=turn.step if turn else 0,
                call_id=call.call.id,
                outcome="unknown" if risky else "cancelled",
                text=STOPPED if risky else NOT_STARTED,
            )
        )


def may_have_acted(call: Call) -> bool:
    return call.started_at is not None and call.effect != "read_only"


def cancel_turn(draft: Draft, reason: ev.CancelReason) -> None:
    turn = draft.state.turn
    if turn is not None:
        close_calls(draft)
        draft.add(ev.TurnCancelled(turn=turn.number, reason=reason, where=describe_turn(turn)))


def fail_turn(draft: Draft, reason: ev.FailReason, sentence: str, error_id: str = "") -> None:
    close_calls(draft)
    if draft.state.turn is not None:
        draft.add(
            ev.TurnFailed(
                turn=draft.state.turn.number, reason=reason, sentence=sentence, error_id=error_id
            )
        )


def suspend(draft: Draft, reason: ev.SuspendReason) -> None:
    session = draft.state.session
    if session is not None and draft.state.phase is Phase.IDLE:
        draft.add(ev.SessionSuspended(session_id=session.session_id, reason=reason))


def join_album(draft: Draft, album: str) -> bool:
    """Whether the message just received belongs to one that the open turn answers, and now goes
    into it: as long as nothing is answered yet, and it overtakes no other message."""
    state, turn = draft.state, draft.state.turn
    if not album or turn is None or len(state.queue) != 1:
        return False
    entries = state.session.entries if state.session else ()
    answered = any(e.kind == "assistant" and e.turn == turn.number for e in entries)
    if answered or all(source.album != album for source in turn.sources):
        return False
    under_way = state.phase is Phase.THINKING
    draft.add(ev.TurnSteered(turn=turn.number, sources=(state.seq,), again=under_way))
    return True


def describe_turn(turn: Turn) -> str:
    """Where a turn stopped: what is done, what has an unknown outcome, what was not started."""
    unknown, cancelled = _names(turn.done, "unknown"), _names(turn.done, "cancelled")
    risky = [c.call.name for c in turn.open_calls if may_have_acted(c)]
    left = [c.call.name for c in turn.open_calls if not may_have_acted(c)]
    lists = (
        ("Done", [name for name in turn.done if not name.endswith((" (unknown)", " (cancelled)"))]),
        ("Started, outcome unknown", [*unknown, *risky]),
        ("Not done", [*cancelled, *left]),
    )
    told = [f"{head}: {', '.join(names)}." for head, names in lists if names]
    return " ".join([f"Stopped at step {turn.step}.", *told])


def _names(done: tuple[str, ...], outcome: ToolOutcome) -> list[str]:
    mark = f" ({outcome})"
    return [note.removesuffix(mark) for note in done if note.endswith(mark)]
