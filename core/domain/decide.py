"""What follows from an input; pure, and nothing follows from one that is stale."""

from datetime import timedelta
from typing import assert_never

from msgspec.structs import replace

from core.domain import events as ev
from core.domain import inputs as ask
from core.domain import notices
from core.domain.draft import Draft
from core.domain.effects import is_summed_up
from core.domain.entries import estimate_tokens
from core.domain.lifecycle import (
    cancel_turn,
    close_if_over,
    ensure_session,
    expiry,
    fail_turn,
    join_album,
    start_next,
    suspend,
)
from core.domain.messages import ToolCall
from core.domain.policy import Policy
from core.domain.room import compact, compact_in_background, leave_out, let_go, make_fit, narrow
from core.domain.spending import cap_of, neared, spent_of
from core.domain.state import Phase, SessionState, Turn

_MAY_BE_FOR_A_PICTURE = ("too_long", "refused", "never")
"""Vendors refuse a picture as a wrong request, as one that is too large, or as if the model were
not there."""
MOST_OF_IT = 0.7
"""A summary of more than this share of what it stands for is none."""
MAX_WAITS = 5
MAX_WAIT = timedelta(hours=1)


def decide(state: SessionState, wish: ask.Input, policy: Policy) -> tuple[ev.Event, ...]:  # noqa: C901, PLR0912 (exhaustive match)
    """The events that answer the input; () when the state has moved on since it was meant."""
    draft = Draft(state, wish.at, policy)
    match wish:
        case ask.Receive():
            _receive(draft, wish)
        case ask.Refuse():
            _refuse(draft, wish)
        case ask.Attempt():
            _attempt(draft, wish)
        case ask.Read():
            _read(draft, wish)
        case ask.Reply():
            _reply(draft, wish)
        case ask.OverBudget():
            _over_budget(draft, wish)
        case ask.Fail():
            _fail(draft, wish)
        case ask.Unstorable():
            _unstorable(draft, wish)
        case ask.Compact() | ask.Summarize() | ask.NotSummarized():
            _shrink(draft, wish)
        case ask.StartTool():
            _start_tool(draft, wish)
        case ask.FinishTool():
            _finish_tool(draft, wish)
        case ask.Wake():
            _wake(draft, wish)
        case ask.Expire():
            if expiry(state, wish.at, policy) in ("idle", "daily"):
                close_if_over(draft)
        case ask.Remind():
            _remind(draft, wish)
        case _:
            assert_never(wish)
    return draft.events


def _receive(draft: Draft, wish: ask.Receive) -> None:
    ensure_session(draft, wish.inbound.address)
    draft.add(ev.MessageReceived(inbound=wish.inbound))
    if join_album(draft, wish.inbound.album):
        return
    if draft.state.turn is not None and draft.policy.busy_mode == "interrupt":
        cancel_turn(draft, "interrupt")
    start_next(draft)


def _refuse(draft: Draft, wish: ask.Refuse) -> None:
    last = draft.state.refused_at
    pause = timedelta(seconds=draft.policy.refusal_pause)
    told = last is None or wish.at - last >= pause
    draft.add(ev.StrangerRefused(inbound=wish.inbound, told=told))


def _attempt(draft: Draft, wish: ask.Attempt) -> None:
    turn = _turn(draft, wish.turn, Phase.QUEUED, Phase.INTERRUPTED)
    if turn is None:
        return
    policy = draft.policy
    if turn.attempt >= policy.turn_max_attempts or turn.resumes >= policy.turn_max_resumes:
        stuck = turn.attempt >= policy.turn_max_attempts
        sentence = notices.NO_PROGRESS if stuck else notices.TOO_OFTEN
        told = sentence.format(attempts=turn.attempt, resumes=turn.resumes)
        fail_turn(draft, "no_progress", told)
        suspend(draft, "no_progress")
        start_next(draft)
        return
    draft.add(ev.TurnAttempted(turn=turn.number, attempt=turn.attempt + 1))
    _steer(draft)


def _read(draft: Draft, wish: ask.Read) -> None:
    turn = _turn(draft, wish.turn, Phase.THINKING)
    if turn is not None and wish.source in {source.seq for source in turn.unread}:
        draft.add(ev.FilesRead(turn=turn.number, source=wish.source, files=wish.files))


def _reply(draft: Draft, wish: ask.Reply) -> None:
    turn = _step(draft, wish.turn, wish.step, Phase.THINKING)
    if turn is None:
        return
    reply = wish.reply
    draft.add(
        ev.ModelReplied(
            turn=turn.number,
            step=turn.step,
            text=reply.text,
            calls=_with_own_ids(reply.calls, turn),
            effects=wish.effects,
            usage=reply.usage.credible,
            model=reply.model,
            cut=reply.cut,
            size=wish.size,
        )
    )
    _warn(draft, turn, wish)
    if not reply.calls:
        _finish(draft, turn)
    elif turn.step >= draft.policy.turn_max_steps:
        cancel_turn(draft, "steps")
        start_next(draft)


def _warn(draft: Draft, turn: Turn, wish: ask.Reply) -> None:
    """What the reply cost counts today; what was known of yesterday says nothing of that."""
    if wish.meter is None or wish.meter.day != draft.at.date():
        return
    meter = wish.meter.plus(wish.reply.usage.credible)
    for limit in neared(meter, draft.policy):
        draft.add(
            ev.CapNeared(
                limit=limit,
                spent=spent_of(limit, meter),
                cap=cap_of(limit, draft.policy),
                address=turn.address,
            )
        )


def _over_budget(draft: Draft, wish: ask.OverBudget) -> None:
    turn = _step(draft, wish.turn, wish.step, Phase.THINKING)
    if turn is None:
        return
    who = f"{turn.address.platform}:{draft.state.spender}"
    cap = cap_of(wish.limit, draft.policy)
    sentence = notices.over_budget(wish.limit, cap, who, draft.at)
    if _has_acted(draft, turn):
        sentence = f"{sentence} {notices.DONE_UNTIL_THEN}"
    fail_turn(draft, "over_budget", sentence)
    start_next(draft)


def _has_acted(draft: Draft, turn: Turn) -> bool:
    entries = draft.state.session.entries if draft.state.session else ()
    return any(entry.acted and entry.turn == turn.number for entry in entries)


def _finish(draft: Draft, turn: Turn) -> None:
    """What made two answers in a row impossible leaves; one refusal may have been for anything.
    What had only to make room waits for the next summary, which may do better than the last."""
    refused_before = draft.state.session is not None and draft.state.session.refusals > 0
    draft.add(ev.TurnFinished(turn=turn.number))
    out = turn.narrowed
    if out is not None and out.reason == "refused" and refused_before:
        let_go(draft, out.first_turn, bare=out.bare)
    start_next(draft)
    if not turn.compacted:
        compact_in_background(draft)


def _with_own_ids(calls: tuple[ToolCall, ...], turn: Turn) -> tuple[ToolCall, ...]:
    """Providers repeat ids, or leave them out; ours are unique within the step."""
    given = {call.id for call in calls}
    seen: set[str] = set()
    result: list[ToolCall] = []
    for number, call in enumerate(calls, 1):
        own = call.id
        if not own or own in seen:
            own = f"call_{turn.number}_{turn.step}_{number}"
            while own in given:
                own += "x"
        seen.add(own)
        result.append(replace(call, id=own))
    return tuple(result)


def _fail(draft: Draft, wish: ask.Fail) -> None:
    turn = _step(draft, wish.turn, wish.step, Phase.THINKING)
    if turn is None:
        return
    failure = wish.failure
    if _mended(draft, turn, wish):
        return
    wait = timedelta(seconds=failure.retry_after or 0)
    if failure.kind == "try_again" and timedelta(0) < wait <= MAX_WAIT and turn.waits < MAX_WAITS:
        draft.add(
            ev.TurnWaiting(
                turn=turn.number, step=turn.step, reason="rate_limit", until=wish.at + wait
            )
        )
        return
    sentence = notices.failure(failure.kind, wish.error_id, wish.hint)
    if failure.kind == "too_long" and draft.state.pins:
        sentence = f"{sentence} {notices.PINS_TAKE_ROOM}"
    fail_turn(draft, failure.kind, sentence, wish.error_id)
    start_next(draft)


def _mended(draft: Draft, turn: Turn, wish: ask.Fail) -> bool:
    """Whether the same call may succeed without something that it held."""
    kind = wish.failure.kind
    if wish.asked and kind in _MAY_BE_FOR_A_PICTURE and leave_out(draft, "pictures"):
        return True
    if kind == "too_long":
        return make_fit(draft, turn, wish.size, asked=wish.asked)
    alone = turn.narrowed is not None and turn.narrowed.reason == "refused"
    return kind == "refused" and not alone and narrow(draft, "refused")


def _shrink(draft: Draft, wish: ask.Shrunk) -> None:
    session = draft.state.session
    wanted = session.compaction if session else None
    if wanted is None:
        return
    waited = is_summed_up(draft.state)
    match wish:
        case ask.Compact() if wanted.attempt >= draft.policy.compact_attempts:
            draft.add(ev.CompactionFailed(reason="no_progress"))
        case ask.Compact():
            draft.add(ev.CompactionAttempted(attempt=wanted.attempt + 1))
        case ask.Summarize(first_turn=first) if first == wanted.first_turn:
            _summarize(draft, wish)
        case ask.NotSummarized(first_turn=first) if first == wanted.first_turn:
            draft.add(
                ev.CompactionFailed(
                    reason=wish.reason, error_id=wish.error_id, usage=wish.usage.credible
                )
            )
        case _:
            pass
    if waited and not is_summed_up(draft.state):
        _steer(draft)


def _summarize(draft: Draft, wish: ask.Summarize) -> None:
    """One that is not much shorter than what it stands for does not help."""
    entries = draft.state.session.entries if draft.state.session else ()
    gone = sum(e.tokens for e in entries if e.turn < wish.first_turn)
    if not wish.summary.strip() or estimate_tokens(wish.summary) > gone * MOST_OF_IT:
        draft.add(ev.CompactionFailed(reason="useless", usage=wish.usage.credible))
        return
    compact(draft, wish.first_turn, wish.summary, usage=wish.usage.credible)


def _unstorable(draft: Draft, wish: ask.Unstorable) -> None:
    turn = draft.state.turn
    if turn is not None and turn.number == wish.turn:
        sentence = notices.failure("unstorable", wish.error_id)
        fail_turn(draft, "unstorable", sentence, wish.error_id)
        start_next(draft)


def _start_tool(draft: Draft, wish: ask.StartTool) -> None:
    turn = _step(draft, wish.turn, wish.step, Phase.ACTING)
    calls = turn.open_calls if turn else ()
    if any(c.call.id == wish.call_id and c.status == "pending" for c in calls):
        draft.add(ev.ToolStarted(turn=wish.turn, step=wish.step, call_id=wish.call_id))


def _finish_tool(draft: Draft, wish: ask.FinishTool) -> None:
    turn = _step(draft, wish.turn, wish.step, Phase.ACTING)
    calls = turn.open_calls if turn else ()
    if not any(c.call.id == wish.call_id and c.status == "running" for c in calls):
        return
    draft.add(*wish.events)
    draft.add(
        ev.ToolFinished(
            turn=wish.turn,
            step=wish.step,
            call_id=wish.call_id,
            outcome=wish.outcome,
            text=wish.text,
            artifact=wish.artifact,
        )
    )
    _steer(draft)


def _steer(draft: Draft) -> None:
    state = draft.state
    if draft.policy.busy_mode != "steer" or state.phase is not Phase.THINKING or not state.queue:
        return
    sources = tuple(source.seq for source in state.queue)
    draft.add(ev.TurnSteered(turn=state.turn.number if state.turn else 0, sources=sources))


def _wake(draft: Draft, wish: ask.Wake) -> None:
    turn = _turn(draft, wish.turn, Phase.WAITING)
    if turn is not None and turn.wait_until is not None and turn.wait_until <= wish.at:
        draft.add(ev.TurnWoken(turn=turn.number))
        _steer(draft)


def _remind(draft: Draft, wish: ask.Remind) -> None:
    for reminder in draft.state.reminders:
        if reminder.reminder_id != wish.reminder_id or reminder.due_at > wish.at:
            continue
        close_if_over(draft)
        ensure_session(draft, reminder.address, None if draft.state.closed_reason else "reminder")
        draft.add(
            ev.ReminderDue(
                reminder_id=reminder.reminder_id,
                due_at=reminder.due_at,
                text=reminder.text,
                address=reminder.address,
                late=(wish.at - reminder.due_at).total_seconds(),
            )
        )
        start_next(draft)


def _turn(draft: Draft, number: int, *phases: Phase) -> Turn | None:
    turn = draft.state.turn
    fits = turn is not None and turn.number == number and draft.state.phase in phases
    return turn if fits else None


def _step(draft: Draft, number: int, step: int, phase: Phase) -> Turn | None:
    turn = _turn(draft, number, phase)
    return turn if turn is not None and turn.step == step else None
