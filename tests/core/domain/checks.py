"""What must be true of a session at any time; pure assertions, they drive nothing."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from core.domain import events as ev
from core.domain.context import PINNED, SUMMARY, View
from core.domain.effects import AwaitSummary, Effect
from core.domain.entries import TOKENS_A_PICTURE, estimate_tokens
from core.domain.messages import (
    AssistantMessage,
    ChatMessage,
    ModelRequest,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from core.domain.outputs import Said, timers
from core.domain.policy import Policy
from core.domain.recovery import faults
from core.domain.state import SessionState
from tests.core.domain.context_witness import CallId, Line
from tests.core.domain.witness import Witness

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
LOOKED_AT = 100
"""Characters by which a shortened result is known."""
MOST_OF_A_TURN = 200
"""Entries."""
OPEN = ("queued", "thinking", "acting", "waiting", "interrupted")


class Shown:
    """A request with the entries that it was made of."""

    def __init__(self, state: SessionState, view: View, request: ModelRequest) -> None:
        self.session_id = state.session.session_id if state.session else ""
        self.view = view
        self.entries = [(e.seq, e.pictures, e.texts, e.short) for e in view.entries]
        self.pins = {pin.seq for pin in view.pins}
        self.request = request
        self.old_pictures = sum(m.text.count("[picture, seen before") for m in request.messages)


def survive_storage(state: SessionState, log: Sequence[ev.Recorded]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(state), type=SessionState) == state
    for one in log:
        assert msgspec.json.decode(msgspec.json.encode(one), type=ev.Recorded) == one
    assert faults(state) == ()


def said_once(before: Sequence[Said], new: Sequence[Said]) -> None:
    seqs = [said.seq for said in (*before[-1:], *new)]
    assert seqs == sorted(set(seqs)), "an outbox id came twice"


def phase(state: SessionState, effects: tuple[Effect, ...], seen: Witness) -> None:
    is_open = bool(seen.turn)
    assert (state.turn is not None) == is_open
    assert (state.phase in OPEN) == is_open, f"{state.phase} with turn {seen.turn}"
    assert bool(effects) == is_open, "an open turn has something to do, and only an open turn"
    assert all(effect.turn == seen.turn for effect in effects)
    wanted = seen.run.wanted if seen.current else None
    assert (state.session is not None and state.session.compaction is not None) == bool(wanted)
    thinks = seen.status == "running" and not seen.open
    awaited = thinks and wanted is not None and wanted.reason == "too_long"
    assert awaited == any(isinstance(effect, AwaitSummary) for effect in effects)
    if state.turn is not None:
        assert (state.turn.number, state.turn.step) == (seen.turn, seen.step)
        ours = {call.call.id: call.status for call in state.turn.open_calls}
        assert ours == {call[2]: status for call, status in seen.open.items()}


def queue(state: SessionState, seen: Witness) -> None:
    """Messages wait in order, and only while a turn is open."""
    assert [source.seq for source in state.queue] == seen.queue
    assert state.turn is not None or not state.queue, "a message waits for nothing"


def due(state: SessionState, policy: Policy, seen: Witness) -> None:
    """A timer a reminder, and resets only where a session may be over."""
    found = timers(state, policy)
    reminders = {timer.data: timer.due for timer in found.values() if timer.kind == "reminder"}
    assert reminders == seen.reminders
    kinds = sorted(timer.kind for timer in found.values() if timer.kind != "reminder")
    restful = bool(seen.current) and not seen.turn and not seen.run.suspended
    idle = ["idle"] if policy.idle_reset is not None and restful else []
    daily = ["daily"] if policy.daily_reset_at is not None and restful else []
    wake = ["wake"] if seen.status == "waiting" else []
    assert kinds == [*daily, *idle, *wake]
    for timer in found.values():
        is_over = seen.over(timer.due, policy)
        assert timer.kind not in ("idle", "daily") or is_over, "a reset that is due too early"


def counted(message: ChatMessage) -> int:
    """The tokens of a message, about as many as our own estimate has."""
    pictures = len(message.pictures) if isinstance(message, UserMessage) else 0
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    more = sum(estimate_tokens(call.arguments) for call in calls) + pictures * TOKENS_A_PICTURE
    return estimate_tokens(message.text) + more


def bounded(state: SessionState, policy: Policy, events: Sequence[ev.Event]) -> None:
    """What has to make room for an answer waits for a summary, but not in any number."""
    if ev.TurnFinished not in {type(event) for event in events} or state.session is None:
        return
    assert len(state.session.entries) <= 2 * policy.context_entries + MOST_OF_A_TURN


def legal(request: ModelRequest) -> None:
    """What every provider takes: a system prompt, then user, assistant and results in turns."""
    system, *rest = request.messages
    assert isinstance(system, SystemMessage)
    assert isinstance(rest[0], UserMessage), "a person speaks first"
    waiting: list[tuple[str, str]] = []
    ids: list[str] = []
    for before, message in zip([system, *rest], rest, strict=False):
        if isinstance(message, ToolMessage):
            assert waiting[:1] == [(message.call_id, message.name)], "a result without its call"
            assert message.text
            waiting.pop(0)
            continue
        assert not waiting, "a call without its result"
        assert type(message) is not type(before), "two of one role side by side"
        if isinstance(message, AssistantMessage):
            assert message.text.strip() or message.calls
            assert all(TOOL_NAME.fullmatch(call.name) for call in message.calls), (
                "a name of no tool"
            )
            new = [call.id for call in message.calls]
            assert len({*ids, *new}) == len(ids) + len(new), "two calls under one id"
            ids += new
            waiting = [(call.id, call.name) for call in message.calls]
        else:
            assert isinstance(message, UserMessage)
            assert message.text.strip()
    assert not waiting, "a call without its result"


def complete(shown: Shown, seen: Witness) -> None:
    """All that was said is there, in order, each result under its own call, until it is let go."""
    request = shown.request
    lines = _lines(shown, seen)
    spoken = "\n".join(m.text for m in request.messages if isinstance(m, UserMessage))
    assert (f"{SUMMARY} {seen.summary}" in spoken) if seen.summary else SUMMARY not in spoken
    assert all(f"{PINNED} {text}" in spoken for text in seen.pins.values()), "a pin is lost"
    assert spoken.count(PINNED) == len(seen.pins)
    place = 0
    for line in lines:
        if line.kind == "user" and line.text.strip():
            place = spoken.find(line.text, place)
            assert place >= 0, f"lost or out of order: {line.text[:40]!r}"
            place += len(line.text)
    gone = set(seen.texts.values()) - {line.text for line in lines}
    assert not [text for text in gone if text.startswith("<") and text in spoken]
    replies = [m for m in request.messages if isinstance(m, AssistantMessage)]
    told = [line for line in lines if line.kind == "assistant"]
    assert [reply.text for reply in replies] == [line.text for line in told]
    if not seen.open:
        _results(request.messages, [call for line in told for call in line.ids], seen)


def _lines(shown: Shown, seen: Witness) -> list[Line]:
    """A reminder's turn may be shown fewer of them, but always whole turns and the newest."""
    first = min((e.turn for e in shown.view.entries if e.kind != "summary"), default=0)
    if not seen.turn or any(seq in seen.updates for seq in seen.sources):
        return seen.lines
    return [line for line in seen.lines if line.turn >= min(first, seen.turn)]


def _results(messages: Sequence[ChatMessage], calls: list[CallId], seen: Witness) -> None:
    """In order; an id that stands in the request already is shown with a suffix of its own."""
    shown = [m for m in messages if isinstance(m, ToolMessage)]
    for message, call in zip(shown, calls, strict=True):
        whole = seen.results[call] or "(empty)"
        short = seen.may_be_short(call) and message.text[:LOOKED_AT] == whole[:LOOKED_AT]
        assert message.text == whole or short
    assert all(m.call_id.startswith(call[2]) for m, call in zip(shown, calls, strict=True))
    assert len({m.call_id for m in shown}) == len(shown)


def stable(before: Shown | None, after: Shown) -> None:
    """Until entries or pictures leave, the next request begins with the one before, to the byte."""
    if before is None or before.session_id != after.session_id:
        return
    if after.entries[: len(before.entries)] != before.entries:
        return
    if not before.pins <= after.pins:
        return
    if before.old_pictures != after.old_pictures:
        return
    old, new = before.request.messages, after.request.messages
    assert new[: len(old) - 1] == old[:-1]
    assert new[len(old) - 1].text.startswith(old[-1].text)


def admitted(events: Sequence[ev.Event], *, over: bool) -> None:
    """A session that is over is closed, the next one opened, and only then is the message taken."""
    kinds = [type(event) for event in events]
    taken = kinds.index(ev.MessageReceived)
    assert over == (kinds[:taken] == [ev.SessionClosed, ev.SessionOpened] and _by_clock(events[0]))


def _by_clock(event: Any) -> bool:
    return isinstance(event, ev.SessionClosed) and event.reason in ("idle", "daily")


def attempted(events: Sequence[ev.Event], *, spent: bool) -> None:
    kinds = [type(event) for event in events]
    ends = [ev.TurnFailed, ev.SessionSuspended]
    kinds = [kind for kind in kinds if kind is not ev.ToolFinished]
    if spent:
        assert kinds[:2] == ends, "out of attempts: the turn fails and is put aside"
    else:
        assert kinds[0] is ev.TurnAttempted, "there are attempts left"


def recovered(events: Sequence[ev.Event], unsafe: set[CallId], *, at_work: bool) -> None:
    """Exactly the started unsafe calls are marked, and the interruption is noted once."""
    if not at_work:
        assert events == ()
        return
    *marks, last = events
    assert isinstance(last, ev.TurnInterrupted)
    marked = [(m.turn, m.step, m.call_id) for m in marks if isinstance(m, ev.ToolFinished)]
    assert len(marked) == len(marks)
    assert set(marked) == unsafe
    assert all(isinstance(m, ev.ToolFinished) and m.outcome == "unknown" for m in marks)
