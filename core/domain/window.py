"""How full the model's window is and where a conversation may be cut; it shows nothing and cuts
nothing."""

from core.domain.messages import RequestSize
from core.domain.policy import Policy, Strategy
from core.domain.state import Entry, Session, SessionState

FITS = 0.9
"""The share of what was refused as too long that is taken to fit."""
MARGIN = 0.98
"""The share of a window that a request is filled up to: the best count errs by a little."""
WORTH_IT = 100
"""Tokens; what is less is not worth a summary."""


def strategy_of(state: SessionState, policy: Policy) -> Strategy:
    session = state.session
    return session.strategy if session and session.strategy else policy.strategy


def window_of(state: SessionState, policy: Policy) -> int:
    """Tokens that a request may have."""
    session = state.session
    return _proved(session, (session.window if session else 0) or policy.context_window)


def fits(state: SessionState, size: RequestSize, policy: Policy) -> bool:
    """Whether the model takes the request, by what it was counted for and how that has erred."""
    session = state.session
    counted = size.counted * (session.bias if session else 1.0)
    window = _known(size, policy)
    another = session is not None and size.window and session.window not in (0, size.window)
    return counted <= MARGIN * (window if another else _proved(session, window))


def _proved(session: Session | None, window: int) -> int:
    """What is left of it by what was refused."""
    refused = session.refused_tokens if session else 0
    return min(window, int(refused * FITS)) if refused else window


def may_fit(size: RequestSize, policy: Policy) -> bool:
    """Whether it is not too long by what is known without having asked."""
    return size.counted <= _known(size, policy)


def _known(size: RequestSize, policy: Policy) -> int:
    return size.window or policy.context_window


def context_tokens(state: SessionState) -> int:
    """Of all that the next request would show, by what the last one proved to be."""
    session = state.session
    if session is None:
        return 0
    return fixed_tokens(state) + scaled(session, sum(entry.tokens for entry in session.entries))


def fixed_tokens(state: SessionState) -> int:
    """Of what stays whatever leaves: the system prompt, the tools, the pins."""
    session = state.session
    pins = sum(pin.tokens for pin in state.pins)
    return session.overhead + scaled(session, pins) if session else pins


def scaled(session: Session, estimated: int) -> int:
    return round(session.scale * estimated)


def turns_of(entries: tuple[Entry, ...]) -> tuple[int, ...]:
    """In order; what stands for older ones is of none."""
    return tuple(sorted({entry.turn for entry in entries if entry.kind != "summary"}))


def newest_within(entries: tuple[Entry, ...], tokens: float, count: int) -> int | None:
    """The oldest turn from which on all entries fit; None when not even the newest does."""
    first: int | None = None
    used = many = 0
    for turn in reversed(turns_of(entries)):
        own = [entry.tokens for entry in entries if entry.turn == turn]
        used, many = used + sum(own), many + len(own)
        if used > tokens or many > count:
            return first
        first = turn
    return first


def cut(state: SessionState, policy: Policy, *, wished: bool = False) -> int | None:
    """From which turn on all stays when older ones are summed up: the newest ones that take no more
    than their share of the window, or with ``wished`` of what there is; one of them always. None
    where nothing, or next to nothing, would leave."""
    session = state.session
    turns = turns_of(session.entries) if session else ()
    if session is None or len(turns) < 2:
        return None
    free = max(window_of(state, policy) - fixed_tokens(state), 0)
    own = sum(entry.tokens for entry in session.entries if entry.kind != "summary")
    room = min(free / session.scale, own) if wished else free / session.scale
    kept = newest_within(session.entries, policy.compact_to * room, policy.context_entries // 4)
    first = turns[-1] if kept is None else kept
    gone = sum(e.tokens for e in session.entries if e.turn < first and e.kind != "summary")
    return first if first > turns[0] and gone >= WORTH_IT else None


def is_crowded(state: SessionState, policy: Policy) -> bool:
    """Whether it is time to sum up what is older: the window fills, and did not just refuse to be
    emptied."""
    session = state.session
    if session is None:
        return False
    tokens, window = context_tokens(state), window_of(state, policy)
    many = len(session.entries) > policy.context_entries
    return (tokens > window * policy.compact_at or many) and has_grown(state, policy)


def has_grown(state: SessionState, policy: Policy) -> bool:
    """Since the last compaction, whatever came of that; at first always."""
    settled = state.session.settled if state.session else 0
    step = policy.compact_step * window_of(state, policy)
    return not settled or context_tokens(state) >= settled + step
