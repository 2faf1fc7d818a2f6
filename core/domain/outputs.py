"""What follows from events for the world outside: words, timers, the inbox; it does none of it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from core.domain import events as ev
from core.domain import notices
from core.domain.fold import apply
from core.domain.keys import Address, TurnId, platform_of
from core.domain.lifecycle import daily_due, idle_due
from core.domain.messages import Button, Inbound, OutboxKind, Usage
from core.domain.policy import Policy
from core.domain.spending import Mark, Spent
from core.domain.state import SessionState, Source, Turn
from core.domain.window import strategy_of

Outcome = Literal["pending", "answered", "failed", "discarded"]
TimerKind = Literal["idle", "daily", "reminder", "wake"]


class InboxId(msgspec.Struct, frozen=True):
    """One platform update; unique for as long as the platform may repeat it."""

    platform: str
    account: str
    update_id: str


class Timer(msgspec.Struct, frozen=True, kw_only=True):
    """A due time in our own table. Setting one with a known id moves it."""

    id: str
    key: str
    kind: TimerKind
    due: datetime
    data: str = ""


class AccessGrant(msgspec.Struct, frozen=True):
    platform: str
    user: str
    role: ev.Role


class Said(msgspec.Struct, frozen=True):
    """Words promised to a chat by the event at ``seq``; ``edits`` names a preview they replace."""

    seq: int
    address: Address
    kind: OutboxKind
    text: str
    edits: str = ""
    buttons: tuple[Button, ...] = ()
    turn: TurnId | None = None


class Outputs(msgspec.Struct, frozen=True):
    said: tuple[Said, ...] = ()
    settled: tuple[tuple[InboxId, Outcome], ...] = ()
    access: tuple[AccessGrant, ...] = ()
    spent: tuple[Spent, ...] = ()
    marks: tuple[Mark, ...] = ()


def inbox_id(inbound: Inbound) -> InboxId:
    return InboxId(inbound.address.platform, inbound.address.account, inbound.update_id)


def preview_id(key: str, turn: int) -> str:
    """The outbox id of a turn's preview: one a turn, whoever works on it."""
    return f"{key}@turn{turn}"


def outputs(before: SessionState, log: Iterable[ev.Recorded], policy: Policy) -> Outputs:
    """Of these events, in order. A message settled twice counts as settled last."""
    said: list[Said] = []
    settled: dict[InboxId, Outcome] = {}
    access: list[AccessGrant] = []
    spent: list[Spent] = []
    marks: list[Mark] = []
    state = before
    for recorded in log:
        after = apply(state, recorded)
        said += _said(state, recorded, policy)
        settled |= _settled(state, recorded.event)
        if isinstance(recorded.event, ev.AccessChanged):
            change = recorded.event
            access.append(AccessGrant(change.platform, change.user, change.role))
        spent += _spent(state, recorded)
        marks += _marks(state, recorded)
        state = after
    return Outputs(tuple(said), tuple(settled.items()), tuple(access), tuple(spent), tuple(marks))


def timers(state: SessionState, policy: Policy) -> dict[str, Timer]:
    """Every due time that the state asks for, by the timer's id."""
    wanted = [
        Timer(
            id=f"{state.key}#{reminder.reminder_id}",
            key=state.key,
            kind="reminder",
            due=reminder.due_at,
            data=reminder.reminder_id,
        )
        for reminder in state.reminders
    ]
    turn, session = state.turn, state.session
    if turn is not None and turn.wait_until is not None:
        wanted.append(_timer(state, "wake", turn.wait_until, str(turn.number)))
    if turn is None and session is not None and not session.suspended:
        idle, daily = idle_due(session, policy), daily_due(session, policy)
        wanted += [_timer(state, "idle", idle)] if idle else []
        wanted += [_timer(state, "daily", daily)] if daily else []
    return {timer.id: timer for timer in wanted}


def _timer(state: SessionState, kind: TimerKind, due: datetime, data: str = "") -> Timer:
    return Timer(id=f"{state.key}#{kind}", key=state.key, kind=kind, due=due, data=data)


def _said(state: SessionState, recorded: ev.Recorded, policy: Policy) -> list[Said]:
    event, seq = recorded.event, recorded.seq
    turn = state.turn
    match event:
        case ev.CapNeared(address=address):
            return [Said(seq, address, "notice", notices.near_cap(event))]
        case ev.CommandAnswered(inbound=inbound, text=text):
            return [Said(seq, inbound.address, "notice", text)]
        case ev.StrangerRefused(inbound=inbound, told=True):
            return [Said(seq, inbound.address, "notice", notices.STRANGER)]
        case ev.SessionSetAside(address=address, reference=reference):
            text = notices.SET_ASIDE.format(reference=reference)
            return [Said(seq, address, "notice", text)]
        case ev.SessionOpened(address=Address() as address, reason=reason):
            text = notices.new_session(reason)
            return [Said(seq, address, "notice", text, buttons=(notices.GO_BACK,))] if text else []
        case ev.ModelReplied(calls=()) if turn is not None:
            return [_answer(state, turn, event, seq)]
        case ev.Compacted() | ev.CompactionFailed():
            return _of_context(state, event, seq, policy)
        case _ if turn is not None:
            words = (_of_turn(turn, recorded, policy), *_unsaid(turn, event))
            text = "\n\n".join(filter(None, words))
            buttons = notices.buttons(event)
            said = Said(seq, turn.address, "notice", text, buttons=buttons, turn=state.turn_id)
            return [said] if text else []
        case _:
            return []


def _of_context(
    state: SessionState, event: ev.Compacted | ev.CompactionFailed, seq: int, policy: Policy
) -> list[Said]:
    """Said to whom it was promised, or with whom we talk; whoever wants to see the newest turns
    only is not told each time that older ones leave, unless more was promised."""
    session = state.session
    if session is None:
        return []
    wanted, talked = session.compaction, session.last_sources or state.queue
    address = wanted.address if wanted else talked[-1].address if talked else None
    match event:
        case _ if address is None:
            return []
        case ev.CompactionFailed(reason="over_budget") if not (wanted and wanted.reason == "asked"):
            return []
        case ev.CompactionFailed():
            text = notices.not_compacted(event)
        case ev.Compacted(summary="") if not wanted and strategy_of(state, policy) == "window":
            return []
        case ev.Compacted(summary=""):
            text = notices.CONTEXT_MOVED
        case ev.Compacted():
            text = notices.compacted(event)
    return [Said(seq, address, "notice", text)]


def _answer(state: SessionState, turn: Turn, event: ev.ModelReplied, seq: int) -> Said:
    text = event.text if event.text.strip() else notices.EMPTY_ANSWER
    if event.cut:
        text = f"{text}\n\n{notices.CUT_ANSWER}"
    without = _answered_without(state, turn)
    text = f"{text}\n\n{without}" if without else text
    edits = preview_id(state.key, turn.number)
    return Said(seq, turn.address, "answer", text, edits=edits, turn=state.turn_id)


def _answered_without(state: SessionState, turn: Turn) -> str:
    """That there was no room is told with the first answer of several."""
    if turn.narrowed is None:
        return ""
    if turn.narrowed.reason == "refused":
        return notices.ANSWERED_ALONE
    told = state.session is not None and state.session.answered_without
    return "" if told else notices.ANSWERED_WITHOUT_ALL


def _unsaid(turn: Turn, event: ev.Event) -> list[str]:
    """Reminders that the turn does not get to say, or not in time."""
    match event:
        case ev.TurnFailed() | ev.TurnCancelled():
            told = True
        case ev.TurnWaiting():
            told = turn.waits == 0
        case _:
            told = False
    return [notices.reminder(source.text) for source in turn.sources if told and source.text]


def _of_turn(turn: Turn, recorded: ev.Recorded, policy: Policy) -> str | None:
    match recorded.event:
        case ev.TurnAttempted() if turn.interrupted_since is not None:
            away = (recorded.at - turn.interrupted_since).total_seconds()
            return notices.picking_up(turn.step) if away > policy.told_after else None
        case ev.TurnWaiting(until=until):
            return notices.waiting(until)
        case ev.TurnFailed(sentence=sentence):
            return sentence
        case ev.TurnCancelled(reason=reason, where=where):
            return notices.cancelled(reason, where)
        case _:
            return None


def _settled(state: SessionState, event: ev.Event) -> dict[InboxId, Outcome]:
    match event:
        case ev.CommandAnswered(inbound=inbound):
            return {inbox_id(inbound): "answered"}
        case ev.StrangerRefused(inbound=inbound):
            return {inbox_id(inbound): "discarded"}
        case ev.TurnFinished() if state.turn:
            return dict.fromkeys(_taken(state.turn.sources), "answered")
        case ev.TurnFailed() if state.turn:
            return dict.fromkeys(_taken(state.turn.sources), "failed")
        case ev.TurnCancelled() if state.turn:
            return dict.fromkeys(_taken(state.turn.sources), "discarded")
        case ev.TurnStarted(retry=True) if state.session:
            return dict.fromkeys(_taken(state.session.last_sources), "pending")
        case _:
            return {}


def _spent(state: SessionState, recorded: ev.Recorded) -> list[Spent]:
    """On the day on which it is recorded."""
    match recorded.event:
        case (
            ev.ModelReplied(usage=usage)
            | ev.Compacted(usage=usage)
            | ev.CompactionFailed(usage=usage)
        ) if usage != Usage():
            day = recorded.at.date()
            return [Spent(day, platform_of(state.key), state.spender, usage)]
        case _:
            return []


def _marks(state: SessionState, recorded: ev.Recorded) -> list[Mark]:
    day = recorded.at.date()
    match recorded.event:
        case ev.CapNeared(limit="service"):
            return [Mark(day, "", "", "service")]
        case ev.CapNeared(limit=limit):
            return [Mark(day, platform_of(state.key), state.spender, limit)]
        case ev.CapsLifted(platform="", user=""):
            return [Mark(day, "", "", "all_lifted")]
        case ev.CapsLifted(platform=platform, user=user):
            return [Mark(day, platform, user, "lifted")]
        case _:
            return []


def _taken(sources: tuple[Source, ...]) -> list[InboxId]:
    return [
        InboxId(source.address.platform, source.address.account, source.update_id)
        for source in sources
        if source.kind == "user"
    ]
