"""Moves that make room in the model's window, and take that back; pure."""

from datetime import datetime

from msgspec.structs import replace

from core.domain import events as ev
from core.domain.context import view_of
from core.domain.draft import Draft
from core.domain.entries import shortened
from core.domain.fold import apply
from core.domain.keys import Address
from core.domain.messages import RequestSize, Usage
from core.domain.policy import Policy
from core.domain.state import SessionState, Turn
from core.domain.window import (
    context_tokens,
    cut,
    fits,
    fixed_tokens,
    has_grown,
    is_crowded,
    may_fit,
    newest_within,
    scaled,
    strategy_of,
    turns_of,
    window_of,
)

NOTHING = Usage()


def make_room(draft: Draft) -> None:
    """Under «window» the oldest turns leave when the model's window fills, and half of it stays
    free, so that the cut moves seldom; under every strategy when they are far too many."""
    state, policy = draft.state, draft.policy
    session = state.session
    if session is None:
        return
    waiting = scaled(session, sum(source.tokens for source in state.queue))
    room = policy.compact_at * window_of(state, policy)
    full = context_tokens(state) + waiting > room and strategy_of(state, policy) == "window"
    if full or len(session.entries) > 2 * policy.context_entries:
        half = max(room - fixed_tokens(state), 0) / 2 / session.scale
        kept = newest_within(session.entries, half, policy.context_entries // 2)
        let_go(draft, state.turns + 1 if kept is None else kept)


def let_go(draft: Draft, first_turn: int, *, bare: bool = False) -> None:
    """Older turns leave, where there are any, and nothing stands for them."""
    entries = draft.state.session.entries if draft.state.session else ()
    if any(bare if entry.kind == "summary" else entry.turn < first_turn for entry in entries):
        compact(draft, first_turn, bare=bare)


def compact(
    draft: Draft, first_turn: int, summary: str = "", *, bare: bool = False, usage: Usage = NOTHING
) -> None:
    """Says how many turns left and what they left behind."""
    state = draft.state
    entries = state.session.entries if state.session else ()
    event = ev.Compacted(
        first_turn=first_turn,
        summary=summary,
        bare=bare,
        turns=sum(turn < first_turn for turn in turns_of(entries)),
        tokens_before=context_tokens(state),
        usage=usage,
    )
    after = apply(state, ev.Recorded(state.seq + 1, draft.at, event))
    draft.add(replace(event, tokens_after=context_tokens(after)))


def start_compaction(
    draft: Draft, reason: ev.CompactReason, address: Address, keep: str = ""
) -> bool:
    """Whether one is under way now; False where nothing would leave by it."""
    state = draft.state
    session = state.session
    if session is None or session.suspended:
        return False
    wished = reason == "asked"
    known = session.compaction
    first = known.first_turn if known else cut(state, draft.policy, wished=wished)
    if first is None:
        return False
    draft.add(ev.CompactionStarted(first_turn=first, reason=reason, address=address, keep=keep))
    return True


def compact_in_background(draft: Draft) -> None:
    """When the window fills, so that the next turns need not wait for it."""
    state = draft.state
    session = state.session
    if session is None or session.suspended or session.compaction or not session.last_sources:
        return
    sums_up = strategy_of(state, draft.policy) in ("compact", "auto")
    if sums_up and is_crowded(state, draft.policy):
        start_compaction(draft, "background", session.last_sources[-1].address)


def leave_out(draft: Draft, what: ev.FilePart) -> bool:
    """False where no such thing is shown to the model."""
    shown = view_of(draft.state, draft.policy).entries
    if draft.state.turn is None or not any(getattr(entry, what) for entry in shown):
        return False
    draft.add(ev.FilesLeftOut(turn=draft.state.turn.number, what=what))
    return True


def shorten_results(draft: Draft, *, newest: bool) -> bool:
    """Of the results that the model was shown before, or of those too that it was not; False where
    there is none that is long."""
    state = draft.state
    entries = view_of(state, draft.policy).entries
    replies = [entry.seq for entry in entries if entry.kind == "assistant"]
    before = state.seq + 1 if newest else max(replies, default=0)
    if state.turn is None or all(shortened(entry, before) == entry for entry in entries):
        return False
    draft.add(ev.ResultsShortened(turn=state.turn.number, before=before))
    return True


def narrow(draft: Draft, reason: ev.NarrowReason) -> bool:
    """Takes the older half of what is still shown of earlier turns out of the open turn's view,
    with a refusal all of it at once; False where nothing is left of it."""
    session, turn = draft.state.session, draft.state.turn
    if session is None or turn is None:
        return False
    known = turn.narrowed
    shown = [n for n in turns_of(session.entries) if n < turn.number]
    shown = [n for n in shown if known is None or n >= known.first_turn]
    older = any(entry.kind == "summary" for entry in session.entries)
    if shown and reason == "too_long":
        kept = [*shown[(len(shown) + 1) // 2 :], turn.number]
        event = ev.ContextNarrowed(turn=turn.number, first_turn=kept[0], reason=reason)
    elif shown or (older and not (known and known.bare)):
        event = ev.ContextNarrowed(
            turn=turn.number, first_turn=turn.number, reason=reason, bare=True
        )
    else:
        return False
    draft.add(event)
    return True


def make_fit(draft: Draft, turn: Turn, size: RequestSize, *, asked: bool) -> bool:
    """One rung of the ladder down to a request that the model takes; False at its end. ``asked``:
    it was the provider that did not take one of this size."""
    _learn(draft, turn, size, asked=asked)
    return (
        _sum_up(draft, turn)
        or shorten_results(draft, newest=False)
        or narrow(draft, "too_long")
        or shorten_results(draft, newest=True)
        or leave_out(draft, "pictures")
        or leave_out(draft, "texts")
    )


def _learn(draft: Draft, turn: Turn, size: RequestSize, *, asked: bool) -> None:
    session = draft.state.session
    if session is None:
        return
    tokens = round(size.counted * session.bias) if asked else 0
    known = session.window or draft.policy.context_window
    window = size.window if size.window != known else 0
    if tokens or window:
        draft.add(ev.WindowLearned(turn=turn.number, tokens=tokens, window=window))


def is_worth_asking(state: SessionState, size: RequestSize, policy: Policy, at: datetime) -> bool:
    """Whether the model takes the request; or, where nothing is left to be taken out of it, may
    take it: what was learnt of sizes may be wrong, and only an answer sets that right."""
    if fits(state, size, policy) or state.turn is None:
        return True
    return may_fit(size, policy) and not make_fit(
        Draft(state, at, policy), state.turn, size, asked=False
    )


def _sum_up(draft: Draft, turn: Turn) -> bool:
    """At most once a turn, and not while the last time did not help; one that is under way is
    waited for."""
    session = draft.state.session
    if session is None or turn.compacted or turn.narrowed:
        return False
    sums_up = strategy_of(draft.state, draft.policy) in ("compact", "auto")
    wanted = session.compaction or (sums_up and has_grown(draft.state, draft.policy))
    return bool(wanted) and start_compaction(draft, "too_long", turn.address)


def undo_compaction(draft: Draft) -> bool:
    """False where there is none to be undone."""
    session = draft.state.session
    if session is None or not session.compacted_at:
        return False
    draft.add(ev.CompactionUndone())
    return True


def undo_turn(draft: Draft) -> bool:
    """Takes the newest exchange out of the context; False where there is none."""
    session = draft.state.session
    turns = turns_of(session.entries) if session else ()
    if not turns:
        return False
    draft.add(ev.TurnUndone(turn=turns[-1]))
    return True
