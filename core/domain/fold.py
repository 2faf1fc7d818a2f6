"""A session as the fold of its events; never looks at the clock, the disk or the network."""

from collections.abc import Iterable
from datetime import datetime
from functools import reduce
from typing import assert_never

from msgspec.structs import replace

from core.domain import events as ev
from core.domain.entries import as_entries, as_tried_again, estimate_tokens
from core.domain.fold_context import apply_context, measured, unshrunk, without_turn
from core.domain.fold_view import ViewEvent, apply_view, settled_view
from core.domain.state import LEGAL, Call, Entry, Pin, Session, SessionState, Source, Turn
from core.errors import IllegalEventError

DONE_KEPT = 50
_PROGRESS = ("ok", "error", "timeout")
_UNSPOKEN = ("refused", "too_long")
"""What the provider refused does not become history."""


def fold(state: SessionState, log: Iterable[ev.Recorded]) -> SessionState:
    """Raises IllegalEventError for a gap or an event that its state does not allow."""
    return reduce(apply, log, state)


def apply(state: SessionState, recorded: ev.Recorded) -> SessionState:
    """Raises IllegalEventError for a gap, another turn's event, or one the state does not allow."""
    event = recorded.event
    if recorded.seq != state.seq + 1:
        raise IllegalEventError(f"{state.key}: event {recorded.seq} follows {state.seq}")
    if not isinstance(event, LEGAL[state.phase]):
        raise IllegalEventError(
            f"{state.key}@{recorded.seq}: {type(event).__name__} while {state.phase}"
        )
    state = replace(state, seq=recorded.seq)
    match event:
        case ev.TurnStarted():
            return _turn_started(state, event, recorded.at)
        case (
            ev.TurnSteered()
            | ev.FilesRead()
            | ev.FilesLeftOut()
            | ev.TurnAttempted()
            | ev.TurnInterrupted()
            | ev.TurnWaiting()
            | ev.TurnWoken()
            | ev.ModelReplied()
            | ev.ToolStarted()
            | ev.ToolFinished()
            | ev.TurnFinished()
            | ev.TurnFailed()
            | ev.TurnCancelled()
            | ev.ResultsShortened()
            | ev.ContextNarrowed()
            | ev.WindowLearned()
        ):
            return _apply_turn(state, event, recorded.at)
        case ev.SessionOpened() | ev.SessionClosed() | ev.SessionSuspended() | ev.SessionReopened():
            return _apply_session(state, event, recorded.at)
        case (
            ev.Compacted()
            | ev.CompactionStarted()
            | ev.CompactionAttempted()
            | ev.CompactionFailed()
            | ev.CompactionUndone()
            | ev.TurnUndone()
            | ev.StrategyChosen()
        ):
            return _touch(apply_context(state, event), recorded.at)
        case (
            ev.SessionSetAside()
            | ev.MessageReceived()
            | ev.StrangerRefused()
            | ev.CommandAnswered()
            | ev.AccessChanged()
            | ev.ReminderSet()
            | ev.ReminderDue()
            | ev.Pinned()
            | ev.Unpinned()
            | ev.CapNeared()
            | ev.CapsLifted()
        ):
            return _apply_anywhere(state, event, recorded.at)
        case _:
            assert_never(event)


def _apply_session(
    state: SessionState,
    event: ev.SessionOpened | ev.SessionClosed | ev.SessionSuspended | ev.SessionReopened,
    at: datetime,
) -> SessionState:
    match event:
        case ev.SessionOpened():
            session = Session(
                session_id=event.session_id,
                parent=event.parent,
                opened_at=at,
                updated_at=at,
                model=event.model,
                parameters=event.parameters,
            )
            return replace(state, session=session, closed_reason=None)
        case ev.SessionClosed():
            closed = replace(_session(state), compaction=None)
            return replace(state, session=None, previous=closed, closed_reason=event.reason)
        case ev.SessionSuspended():
            return _touch(state, at, suspended=True, compaction=None)
        case ev.SessionReopened():
            return _reopened(state, event, at)
        case _:
            assert_never(event)


def _reopened(state: SessionState, event: ev.SessionReopened, at: datetime) -> SessionState:
    if state.session is not None and state.session.session_id == event.session_id:
        return _touch(state, at, suspended=False, last_user_at=at)
    if state.previous is None or state.previous.session_id != event.session_id:
        raise IllegalEventError(f"{state.key}@{state.seq}: no session {event.session_id} to reopen")
    back = replace(state.previous, suspended=False, updated_at=at, last_user_at=at)
    away = replace(state.session, compaction=None) if state.session else None
    return replace(state, session=back, previous=away, closed_reason=None)


def _apply_anywhere(
    state: SessionState,
    event: ev.SessionSetAside
    | ev.MessageReceived
    | ev.StrangerRefused
    | ev.CommandAnswered
    | ev.AccessChanged
    | ev.ReminderSet
    | ev.ReminderDue
    | ev.Pinned
    | ev.Unpinned
    | ev.CapNeared
    | ev.CapsLifted,
    at: datetime,
) -> SessionState:
    match event:
        case ev.MessageReceived(inbound=inbound):
            source = Source(
                state.seq,
                "user",
                inbound.address,
                estimate_tokens(inbound.quote_shown + inbound.text),
                inbound.update_id,
                files=len(inbound.attachments),
                album=inbound.album,
                person=inbound.person,
            )
            queued = replace(state, queue=(*state.queue, source), wrote_last=inbound.person)
            return _touch(queued, at, last_user_at=at) if queued.session else queued
        case ev.ReminderDue():
            tokens = estimate_tokens(event.text)
            source = Source(state.seq, "reminder", event.address, tokens, text=event.text)
            rest = tuple(r for r in state.reminders if r.reminder_id != event.reminder_id)
            return replace(state, queue=(*state.queue, source), reminders=rest)
        case ev.ReminderSet():
            return replace(state, reminders=(*state.reminders, event))
        case ev.StrangerRefused(told=told):
            return replace(state, refused_at=at) if told else state
        case ev.Pinned(text=text):
            last = state.session.entries[-1].seq if state.session and state.session.entries else 0
            pin = Pin(state.seq, text, estimate_tokens(text), last)
            return replace(state, pins=(*state.pins, pin))
        case ev.Unpinned(pin=seq):
            return replace(state, pins=tuple(pin for pin in state.pins if pin.seq != seq))
        case (
            ev.SessionSetAside()
            | ev.CommandAnswered()
            | ev.AccessChanged()
            | ev.CapNeared()
            | ev.CapsLifted()
        ):
            return state
        case _:
            assert_never(event)


def _turn_started(state: SessionState, event: ev.TurnStarted, at: datetime) -> SessionState:
    session = _session(state)
    if event.turn != state.turns + 1:
        raise IllegalEventError(f"{state.key}@{state.seq}: turn {event.turn} is out of order")
    known = session.last_sources if event.retry else state.queue
    sources = tuple(source for source in known if source.seq in event.sources)
    if not sources or len(sources) != len(event.sources):
        raise IllegalEventError(f"{state.key}@{state.seq}: the turn answers unknown messages")
    sources = tuple(as_tried_again(source) for source in sources) if event.retry else sources
    session = unshrunk(state, session)
    if event.retry:
        session = without_turn(session, session.last_turn)
    users = [source for source in sources if source.kind == "user"]
    started = replace(
        state,
        turn=Turn(number=event.turn, sources=sources, started_at=at),
        turns=event.turn,
        queue=tuple(source for source in state.queue if source.seq not in event.sources),
    )
    started = _touch(
        replace(started, session=session),
        at,
        entries=(*session.entries, *as_entries(sources, event.turn)),
        last_sources=sources,
        last_turn=event.turn,
    )
    if event.retry:
        return _touch(started, at, last_user_at=at)
    return _touch(started, at, last_user_at=session.last_user_at or at) if users else started


_TurnEvent = (
    ViewEvent
    | ev.TurnSteered
    | ev.TurnAttempted
    | ev.TurnInterrupted
    | ev.TurnWaiting
    | ev.TurnWoken
    | ev.ModelReplied
    | ev.ToolStarted
    | ev.ToolFinished
    | ev.TurnFinished
    | ev.TurnFailed
    | ev.TurnCancelled
)


def _apply_turn(  # noqa: C901, PLR0912 (exhaustive match)
    state: SessionState, event: _TurnEvent, at: datetime
) -> SessionState:
    turn = state.turn
    if turn is None or event.turn != turn.number:
        raise IllegalEventError(f"{state.key}@{state.seq}: turn {event.turn} is not the open one")
    match event:
        case ev.ModelReplied():
            return _model_replied(state, turn, event, at)
        case ev.ToolStarted():
            call = _call(state, turn, event, "pending")
            return _with_turn(state, at, _put(turn, replace(call, status="running", started_at=at)))
        case ev.ToolFinished():
            return _tool_finished(state, turn, event, at)
        case ev.TurnSteered():
            return _steered(state, turn, event, at)
        case (
            ev.FilesRead()
            | ev.FilesLeftOut()
            | ev.ResultsShortened()
            | ev.ContextNarrowed()
            | ev.WindowLearned()
        ):
            return _touch(apply_view(state, _session(state), turn, event), at)
        case ev.TurnAttempted():
            resumed = turn.status == "interrupted"
            turn = replace(
                turn,
                status="running",
                attempt=event.attempt,
                resumes=turn.resumes + resumed,
                interrupted_since=None,
                paused_at=None,
            )
            return _with_turn(state, at, turn)
        case ev.TurnInterrupted():
            return _interrupted(state, turn, event, at)
        case ev.TurnWaiting():
            return _with_turn(
                state,
                at,
                replace(turn, status="waiting", wait_until=event.until, waits=turn.waits + 1),
            )
        case ev.TurnWoken():
            return _with_turn(state, at, replace(turn, status="running", wait_until=None))
        case ev.TurnFinished():
            return _with_turn(replace(state, session=settled_view(_session(state), turn)), at, None)
        case ev.TurnFailed() | ev.TurnCancelled():
            return _ended(state, turn, event, at)
        case _:
            assert_never(event)


def _model_replied(
    state: SessionState, turn: Turn, event: ev.ModelReplied, at: datetime
) -> SessionState:
    if event.step != turn.step or len(event.calls) != len(event.effects):
        raise IllegalEventError(f"{state.key}@{state.seq}: reply to another step")
    session = _session(state)
    tokens = estimate_tokens(event.text) + sum(estimate_tokens(c.arguments) for c in event.calls)
    calls = tuple(
        Call(call, effect) for call, effect in zip(event.calls, event.effects, strict=True)
    )
    session = measured(session, event)
    entries = (*session.entries, Entry(state.seq, "assistant", turn.number, tokens))
    state = _touch(
        replace(state, session=session), at, entries=entries, usage=session.usage + event.usage
    )
    return _with_turn(state, at, replace(turn, calls=calls, attempt=0, waits=0))


def _tool_finished(
    state: SessionState, turn: Turn, event: ev.ToolFinished, at: datetime
) -> SessionState:
    wanted = "running" if event.outcome in _PROGRESS else None
    call = _call(state, turn, event, wanted)
    good = event.outcome == "ok"
    turn = _put(
        turn,
        replace(
            call,
            status="completed" if good else "failed",
            finished_at=at,
            result_seq=state.seq,
        ),
    )
    note = call.call.name if good else f"{call.call.name} ({event.outcome})"
    turn = replace(turn, done=(*turn.done, note)[-DONE_KEPT:])
    if event.outcome in _PROGRESS:
        turn = replace(turn, attempt=0)
    if not turn.open_calls:
        turn = replace(turn, step=turn.step + 1)
    acted = call.started_at is not None and call.effect != "read_only"
    tokens = estimate_tokens(event.text)
    entry = Entry(state.seq, "tool", turn.number, tokens, acted=acted)
    state = _touch(state, at, entries=(*_session(state).entries, entry))
    return _with_turn(state, at, turn)


def _steered(state: SessionState, turn: Turn, event: ev.TurnSteered, at: datetime) -> SessionState:
    sources = tuple(source for source in state.queue if source.seq in event.sources)
    if not sources or len(sources) != len(event.sources):
        raise IllegalEventError(f"{state.key}@{state.seq}: the turn is steered by unknown messages")
    turn = replace(turn, sources=(*turn.sources, *sources), step=turn.step + event.again)
    state = replace(state, queue=tuple(s for s in state.queue if s not in sources))
    entries = (*_session(state).entries, *as_entries(sources, turn.number))
    return _with_turn(_touch(state, at, entries=entries, last_sources=turn.sources), at, turn)


def _interrupted(
    state: SessionState, turn: Turn, event: ev.TurnInterrupted, at: datetime
) -> SessionState:
    calls = tuple(
        replace(call, status="pending") if call.status == "running" else call for call in turn.calls
    )
    turn = replace(
        turn,
        status="interrupted",
        calls=calls,
        interrupted_since=event.since,
        paused_at=at,
    )
    kept = tuple(
        entry
        for entry in _session(state).entries
        if entry.kind != "interrupted" or entry.turn != turn.number
    )
    note = Entry(state.seq, "interrupted", turn.number, estimate_tokens(""))
    return _with_turn(_touch(state, at, entries=(*kept, note)), at, turn)


def _ended(
    state: SessionState, turn: Turn, event: ev.TurnFailed | ev.TurnCancelled, at: datetime
) -> SessionState:
    if turn.open_calls:
        raise IllegalEventError(f"{state.key}@{state.seq}: the turn ends with open calls")
    entries = _session(state).entries
    if isinstance(event, ev.TurnFailed) and event.reason in _UNSPOKEN:
        kept = tuple(entry for entry in entries if entry.turn != turn.number)
    else:
        kept = (*entries, Entry(state.seq, "ended", turn.number, estimate_tokens("")))
    return _with_turn(_touch(state, at, entries=kept), at, None)


def _call(
    state: SessionState, turn: Turn, event: ev.ToolStarted | ev.ToolFinished, status: str | None
) -> Call:
    found = [c for c in turn.open_calls if c.call.id == event.call_id]
    if event.step != turn.step or not found or status not in (None, found[0].status):
        raise IllegalEventError(f"{state.key}@{state.seq}: call {event.call_id} is not {status}")
    return found[0]


def _put(turn: Turn, changed: Call) -> Turn:
    calls = tuple(changed if c.call.id == changed.call.id else c for c in turn.calls)
    return replace(turn, calls=calls)


def _session(state: SessionState) -> Session:
    if state.session is None:
        raise IllegalEventError(f"{state.key}@{state.seq}: no session is open")
    return state.session


def _touch(state: SessionState, at: datetime, **changes: object) -> SessionState:
    return replace(state, session=replace(_session(state), updated_at=at, **changes))


def _with_turn(state: SessionState, at: datetime, turn: Turn | None) -> SessionState:
    return _touch(replace(state, turn=turn), at)
