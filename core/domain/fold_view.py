"""The fold of what the open turn is shown; it takes nothing from the session before the turn has
been answered with it."""

from typing import assert_never

from msgspec.structs import replace

from core.domain import events as ev
from core.domain.entries import files_entry, shortened, without
from core.domain.state import Narrowed, Session, SessionState, Turn
from core.errors import IllegalEventError

ViewEvent = (
    ev.FilesRead | ev.FilesLeftOut | ev.ResultsShortened | ev.ContextNarrowed | ev.WindowLearned
)


def apply_view(state: SessionState, session: Session, turn: Turn, event: ViewEvent) -> SessionState:
    """Raises IllegalEventError."""
    match event:
        case ev.FilesRead():
            return _files_read(state, session, turn, event)
        case ev.FilesLeftOut(what=what):
            first = turn.narrowed.first_turn if turn.narrowed else 0
            entries = tuple(without(e, what) if e.turn >= first else e for e in session.entries)
            return replace(state, session=replace(session, entries=entries))
        case ev.ResultsShortened(before=before):
            return replace(state, turn=replace(turn, short_before=before))
        case ev.ContextNarrowed(first_turn=first, reason=reason, bare=bare):
            return replace(state, turn=replace(turn, narrowed=Narrowed(first, reason, bare)))
        case ev.WindowLearned(tokens=tokens, window=window):
            session = with_window(session, window)
            refused = min(session.refused_tokens or tokens, tokens or session.refused_tokens)
            return replace(state, session=replace(session, refused_tokens=refused))
        case _:
            assert_never(event)


def with_window(session: Session, window: int) -> Session:
    """What was too long for a model says nothing of another."""
    if not window:
        return session
    refused = session.refused_tokens if session.window in (0, window) else 0
    return replace(session, window=window, refused_tokens=refused)


def settled_view(session: Session, turn: Turn) -> Session:
    """The session whose turn was answered: what was shortened for it stays short."""
    alone = turn.narrowed is not None and turn.narrowed.reason == "refused"
    entries = tuple(shortened(entry, turn.short_before) for entry in session.entries)
    return replace(
        session,
        entries=entries,
        refusals=session.refusals + 1 if alone else 0,
        answered_without=turn.narrowed is not None and not alone,
    )


def _files_read(
    state: SessionState, session: Session, turn: Turn, event: ev.FilesRead
) -> SessionState:
    if event.source not in {source.seq for source in turn.unread}:
        raise IllegalEventError(f"{state.key}@{state.seq}: message {event.source} has no files")
    entry = files_entry(event, state.seq)
    sources = tuple(replace(s, read=entry) if s.seq == event.source else s for s in turn.sources)
    entries = (*session.entries, entry)
    return replace(
        state,
        session=replace(session, entries=entries, last_sources=sources),
        turn=replace(turn, sources=sources, attempt=0),
    )
