"""What is told of a session to those who watch; pure, and never a word of what is said in it."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from core.domain import events as ev
from core.domain.keys import platform_of
from core.domain.messages import ModelFailure, ModelReply
from core.domain.state import SessionState
from core.ports import Span, SpanKind, TurnEnd


def span_of(state: SessionState, kind: SpanKind, step: int = 0, name: str = "") -> Span:
    """Of the open turn, if any."""
    platform = platform_of(state.key)
    return Span(kind=kind, platform=platform, turn=state.turn_id, step=step, name=name)


def heard(span: Span, reply: ModelReply | ModelFailure) -> None:
    """What a model's answer was, as far as it is anybody's."""
    span.outcome = outcome_of(reply)
    if isinstance(reply, ModelReply):
        span.usage = reply.usage.credible


def outcome_of(reply: ModelReply | ModelFailure) -> str:
    return reply.kind if isinstance(reply, ModelFailure) else "replied"


def commit_span(before: SessionState, after: SessionState) -> Span:
    """Of the turn that it belongs to, which it may end or begin."""
    turn = before.turn_id or after.turn_id
    return Span(kind="commit", platform=platform_of(before.key), turn=turn)


def end_of_turn(before: SessionState, events: Iterable[ev.Event], at: datetime) -> TurnEnd | None:
    """None where the events, recorded at ``at``, end no turn."""
    turn, turn_id = before.turn, before.turn_id
    if turn is None or turn_id is None:
        return None
    for event in events:
        match event:
            case ev.TurnFinished():
                outcome, reason = "answered", ""
            case ev.TurnFailed():
                outcome, reason = "failed", event.reason
            case ev.TurnCancelled():
                outcome, reason = "cancelled", event.reason
            case _:
                continue
        return TurnEnd(
            turn=turn_id,
            platform=platform_of(before.key),
            outcome=outcome,
            reason=reason,
            started_at=turn.started_at,
            ended_at=at,
            steps=turn.step,
            resumes=turn.resumes,
        )
    return None


def turns_by_phase(
    states: Iterable[SessionState], held: Iterable[str], now: datetime
) -> Counter[str]:
    """Open turns of a process: those that it works on, and those that it put to wait and that are
    not due yet; when they are, any process may take them."""
    ours = frozenset(held)
    found = Counter[str]()
    for state in states:
        turn = state.turn
        if turn is None:
            continue
        if state.key in ours or (turn.wait_until is not None and turn.wait_until > now):
            found[str(state.phase)] += 1
    return found
