"""The fold of what the model is shown: compaction, its undoing, how large things proved to be."""

from typing import assert_never

from msgspec.structs import replace

from core.domain import events as ev
from core.domain.entries import estimate_tokens
from core.domain.fold_view import with_window
from core.domain.policy import Strategy
from core.domain.state import Compaction, Entry, Session, SessionState
from core.domain.window import FITS, context_tokens, turns_of
from core.errors import IllegalEventError

LEAST, MOST = 0.25, 4.0
"""Between these a provider's count is believed; outside of them it counted something else."""
ENOUGH = 1_000
"""Tokens of a request from which on something is learnt of it: in a smaller one the frame around
the messages weighs more than they do."""

ContextEvent = (
    ev.Compacted
    | ev.CompactionStarted
    | ev.CompactionAttempted
    | ev.CompactionFailed
    | ev.CompactionUndone
    | ev.TurnUndone
    | ev.StrategyChosen
)


def apply_context(state: SessionState, event: ContextEvent) -> SessionState:
    """Raises IllegalEventError."""
    session = state.session
    if session is None:
        raise IllegalEventError(f"{state.key}@{state.seq}: no session is open")
    match event:
        case ev.Compacted():
            return _compacted(state, session, event)
        case ev.CompactionStarted():
            return _started(state, session, event)
        case ev.CompactionAttempted(attempt=attempt):
            wanted = replace(_wanted(state, session), attempt=attempt)
            return _with(state, session, compaction=wanted)
        case ev.CompactionFailed(usage=usage):
            _wanted(state, session)
            failed = _with(state, session, compaction=None, usage=session.usage + usage)
            return _settled(_had_its_own(failed))
        case ev.CompactionUndone():
            return _undone(state, session)
        case ev.TurnUndone(turn=turn):
            rest = without_turn(session, turn)
            return _with(state, rest, last_sources=(), compaction=None)
        case ev.StrategyChosen(strategy=strategy):
            wanted = session.compaction
            wanted = wanted if wanted and _stays_wanted(wanted, strategy) else None
            return _with(state, session, strategy=strategy, compaction=wanted)
        case _:
            assert_never(event)


def measured(session: Session, reply: ev.ModelReplied) -> Session:
    """The session that knows what its request proved to be by the provider's count, or by ours."""
    size = reply.size
    prompt = reply.usage.credible.prompt or size.counted
    session = with_window(session, size.window)
    if not prompt or not size.counted:
        return session
    bias = _believed(prompt / size.counted) if size.counted >= ENOUGH else session.bias
    took_more = size.counted * session.bias > int(session.refused_tokens * FITS)
    refused = 0 if took_more else session.refused_tokens
    overhead = round(size.overhead * bias)
    scale = session.scale
    if size.estimated >= ENOUGH:
        scale = _believed(max(prompt - overhead, 0) / size.estimated)
    return replace(session, refused_tokens=refused, overhead=overhead, scale=scale, bias=bias)


def unshrunk(state: SessionState, session: Session) -> Session:
    """What left since the last compaction is not waited for to come back before the next."""
    return replace(session, settled=min(session.settled, context_tokens(state)))


def without_turn(session: Session, turn: int) -> Session:
    """Nor does it come back when a compaction is undone."""
    return replace(
        session,
        entries=tuple(entry for entry in session.entries if entry.turn != turn),
        replaced=tuple(entry for entry in session.replaced if entry.turn != turn),
    )


def _stays_wanted(wanted: Compaction, strategy: Strategy) -> bool:
    return wanted.reason == "asked" or strategy in ("compact", "auto")


def _believed(share: float) -> float:
    return min(max(share, LEAST), MOST)


def _started(state: SessionState, session: Session, event: ev.CompactionStarted) -> SessionState:
    """One that is under way is the same one, wanted by more."""
    known = session.compaction
    wanted = Compaction(
        first_turn=known.first_turn if known else event.first_turn,
        reason=event.reason,
        address=event.address,
        keep=event.keep or (known.keep if known else ""),
        attempt=known.attempt if known else 0,
    )
    turn = state.turn
    if turn is not None and event.reason == "too_long":
        turn = replace(turn, compacted=True)
    return replace(_with(state, session, compaction=wanted), turn=turn)


def _compacted(state: SessionState, session: Session, event: ev.Compacted) -> SessionState:
    gone = tuple(entry for entry in session.entries if _leaves(entry, event))
    kept = tuple(entry for entry in session.entries if not _leaves(entry, event))
    if event.summary:
        kept = (Entry(state.seq, "summary", 0, estimate_tokens(event.summary)), *kept)
    after = _with(
        state,
        session,
        entries=kept,
        replaced=gone,
        left=session.left + len(turns_of(gone)),
        compacted_at=state.seq,
        compaction=None,
        usage=session.usage + event.usage,
    )
    return _settled(_had_its_own(after))


def _leaves(entry: Entry, event: ev.Compacted) -> bool:
    if entry.kind == "summary":
        return bool(event.summary) or event.bare
    return entry.turn < event.first_turn


def _undone(state: SessionState, session: Session) -> SessionState:
    if not session.compacted_at:
        raise IllegalEventError(f"{state.key}@{state.seq}: there is no compaction to undo")
    since = tuple(entry for entry in session.entries if entry.seq != session.compacted_at)
    older = tuple(entry for entry in since if entry.kind == "summary")
    newer = tuple(entry for entry in since if entry.kind != "summary")
    undone = _with(
        state,
        session,
        entries=(*older, *session.replaced, *newer),
        replaced=(),
        left=session.left - len(turns_of(session.replaced)),
        compacted_at=0,
        compaction=None,
    )
    return _settled(undone)


def _wanted(state: SessionState, session: Session) -> Compaction:
    if session.compaction is None:
        raise IllegalEventError(f"{state.key}@{state.seq}: no compaction is wanted")
    return session.compaction


def _had_its_own(state: SessionState) -> SessionState:
    turn = state.turn
    return replace(state, turn=replace(turn, compacted=True)) if turn else state


def _settled(state: SessionState) -> SessionState:
    session = state.session
    return _with(state, session, settled=context_tokens(state)) if session else state


def _with(state: SessionState, session: Session, **changes: object) -> SessionState:
    return replace(state, session=replace(session, **changes))
