"""``/context``: what the model sees now, and the choice of how much that is; it shows no text."""

from core.commands.base import PUT_ASIDE, Command, CommandContext
from core.domain.context import View, view_of
from core.domain.draft import Draft
from core.domain.events import StrategyChosen
from core.domain.lifecycle import ensure_session
from core.domain.policy import Policy, Strategy
from core.domain.state import Entry, Session, SessionState
from core.domain.window import (
    has_grown,
    is_crowded,
    scaled,
    strategy_of,
    turns_of,
    window_of,
)

SHOWN: dict[Strategy, str] = {
    "full": "everything that we said, as long as it fits",
    "window": "the newest turns; older ones leave",
    "compact": "the newest turns, behind a summary of the older ones",
    "auto": "everything while it is short, later the newest turns behind a summary of the older "
    "ones; a reminder sees the newest turns",
}
CHOICES = "`/context full`, `window`, `compact` or `auto` chooses; /pins lists what always stays."

Row = tuple[str, int]


def run(draft: Draft, context: CommandContext) -> str:
    wanted = context.argument.casefold()
    if not wanted:
        return _report(draft.state, draft.policy)
    for strategy in SHOWN:
        if strategy == wanted:
            return _choose(draft, context, strategy)
    known = "\n".join(f"- `/context {name}`: {what}" for name, what in SHOWN.items())
    return f"What shall the model see of a long conversation?\n\n{known}"


def _choose(draft: Draft, context: CommandContext, strategy: Strategy) -> str:
    session = draft.state.session
    if session is not None and session.suspended:
        return PUT_ASIDE
    ensure_session(draft, context.inbound.address)
    if draft.state.session is None or draft.state.session.strategy != strategy:
        draft.add(StrategyChosen(strategy=strategy))
    return f"In this conversation the model sees {SHOWN[strategy]} (`{strategy}`)."


def _report(state: SessionState, policy: Policy) -> str:
    view = view_of(state, policy)
    rows = _rows(state, view)
    tokens, window = sum(tokens for _, tokens in rows), window_of(state, policy)
    total = f"{tokens:,} of {window:,} ({tokens / window:.0%})"
    strategy = strategy_of(state, policy)
    lines = [
        "| in the model's view | about so many tokens |",
        "| --- | --- |",
        *(f"| {name} | {tokens:,} |" for name, tokens in rows),
        f"| **together** | **{total}** |",
        "",
        f"- strategy `{strategy}`: {SHOWN[strategy]}",
        *(f"- {line}" for line in (_left_out(state, view), _next(state, policy)) if line),
        f"- {CHOICES}",
    ]
    return "\n".join(lines)


def _rows(state: SessionState, view: View) -> list[Row]:
    session = state.session
    summaries, results, said = _parts(view.entries)
    turns = len(turns_of(view.entries))
    pins = sum(pin.tokens for pin in view.pins)
    overhead = session.overhead if session else 0
    system = "system and tools"
    return [
        (system if overhead else f"{system} (not known yet)", overhead),
        (f"pinned ({len(view.pins)})", _scaled(session, pins)),
        *[("summary", _scaled(session, _sum(summaries)))] * bool(summaries),
        (f"turns ({turns})", _scaled(session, _sum(said))),
        (f"tool results ({len(results)})", _scaled(session, _sum(results))),
    ]


def _parts(entries: tuple[Entry, ...]) -> tuple[list[Entry], list[Entry], list[Entry]]:
    """Summaries, results of tools, and all the rest."""
    summaries = [entry for entry in entries if entry.kind == "summary"]
    results = [entry for entry in entries if entry.kind == "tool"]
    said = [entry for entry in entries if entry.kind not in ("summary", "tool")]
    return summaries, results, said


def _sum(entries: list[Entry]) -> int:
    return sum(entry.tokens for entry in entries)


def _scaled(session: Session | None, tokens: int) -> int:
    return scaled(session, tokens) if session else tokens


def _left_out(state: SessionState, view: View) -> str:
    session = state.session
    if session is None:
        return "no conversation is open; your next message starts one"
    hidden = len(turns_of(session.entries)) - len(turns_of(view.entries))
    summed = any(entry.kind == "summary" for entry in view.entries)
    told = [
        f"for this answer alone: {hidden}" if hidden else "",
        f"{'summed up' if summed else 'gone'}: {session.left}" if session.left else "",
    ]
    return f"older turns out of view, {', '.join(part for part in told if part) or 'none'}"


def _next(state: SessionState, policy: Policy) -> str:
    session = state.session
    strategy = strategy_of(state, policy)
    if session is None:
        return ""
    if session.compaction is not None:
        return "older turns are being summed up just now"
    limit = f"{int(policy.compact_at * window_of(state, policy)):,}"
    match strategy:
        case "full":
            return "nothing leaves, until a request does not fit; then the oldest turns do"
        case "window":
            return f"next: above {limit} tokens the oldest turns leave"
        case "compact" | "auto" if is_crowded(state, policy):
            return "next: older turns are summed up after the coming answer; /compact does it now"
        case "compact" | "auto" if not has_grown(state, policy):
            return (
                f"next: above {limit} tokens older turns are summed up, once there are more of them"
            )
        case "compact" | "auto":
            return f"next: above {limit} tokens older turns are summed up; /compact does it now"


COMMAND = Command(name="context", summary="what the model sees of our conversation", run=run)
