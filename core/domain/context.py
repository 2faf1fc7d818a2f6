"""What the model is shown: a legal conversation out of any log; never reads a body twice."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from core.domain import events as ev
from core.domain.entries import shortened
from core.domain.messages import (
    AssistantMessage,
    Attachment,
    ChatMessage,
    Inbound,
    ModelRequest,
    Picture,
    ReadFile,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from core.domain.policy import Policy
from core.domain.state import Entry, Pin, SessionState, Turn
from core.domain.values import way_to
from core.domain.window import newest_within, strategy_of

REMINDER = "[reminder]"
NOTE = "[note]"
SUMMARY = "[summary]"
PINNED = "[pinned]"
LONGEST_NAME = 64
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
MOST_PICTURES, PICTURES_KEPT = 10, 5
"""What is shown at most, and what of it stays when there are more; those of the newest turn are all
shown."""
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
LEFT_OUT = "left out, since the model did not take a request with it; say so if it is asked for"
NO_RESULT = "No result was recorded; check before you repeat it."
SHORT_HEAD, SHORT_TAIL = 240, 80
"""Characters that are left of a result that had to be shortened."""

Bodies = Mapping[int, ev.Recorded]


class Seen(msgspec.Struct, frozen=True):
    """What came with a message, as the model is shown it."""

    lines: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()


Files = Mapping[int, Seen]
"""By the message that they came with."""


class View(msgspec.Struct, frozen=True):
    """What of a session the model is shown."""

    entries: tuple[Entry, ...] = ()
    pins: tuple[Pin, ...] = ()

    @property
    def seqs(self) -> tuple[int, ...]:
        """Of the events that the request is made of."""
        return tuple(sorted(entry.seq for entry in self.entries))

    @property
    def tokens(self) -> int:
        """Estimated."""
        return sum(e.tokens for e in self.entries) + sum(p.tokens for p in self.pins)


def view_of(state: SessionState, policy: Policy) -> View:
    """For the open turn; without one, what the next is going to see."""
    session, turn = state.session, state.turn
    if session is None:
        return View(pins=state.pins)
    entries, pins = session.entries, state.pins
    if turn is None:
        return View(entries, pins)
    if turn.narrowed is not None:
        entries = _since(entries, turn.narrowed.first_turn, bare=turn.narrowed.bare)
    scheduled = all(source.kind == "reminder" for source in turn.sources)
    if scheduled and strategy_of(state, policy) == "auto":
        entries = _newest(entries, turn, policy.context_full / session.scale, policy)
    return View(tuple(shortened(entry, turn.short_before) for entry in entries), pins)


def _newest(
    entries: tuple[Entry, ...], turn: Turn, room: float, policy: Policy
) -> tuple[Entry, ...]:
    """What the turn itself adds moves nothing out."""
    earlier = tuple(entry for entry in entries if entry.turn < turn.number)
    first = newest_within(earlier, room, policy.context_entries)
    return _since(entries, turn.number if first is None else first, bare=False)


def _since(entries: tuple[Entry, ...], first_turn: int, *, bare: bool) -> tuple[Entry, ...]:
    return tuple(
        entry
        for entry in entries
        if entry.turn >= first_turn or (entry.kind == "summary" and not bare)
    )


def build_request(
    view: View, bodies: Bodies, system_prompt: str, tools: tuple[ToolSpec, ...]
) -> ModelRequest:
    """Whatever the log holds: calls are followed by their results, roles alternate, a user speaks.

    Two requests of one session share their beginning to the byte, until entries leave it.
    """
    messages = _merge_users(_paired(view, bodies))
    if not any(isinstance(message, UserMessage) for message in messages):
        messages.append(UserMessage(f"{NOTE} Please go on."))
    return ModelRequest((SystemMessage(system_prompt), *messages), tools)


def _files(entries: tuple[Entry, ...], bodies: Bodies) -> Files:
    """Pictures cost much: an older one is only said to have been there."""
    read = [
        (entry, event)
        for entry in entries
        if isinstance(
            event := bodies[entry.seq].event if entry.seq in bodies else None, ev.FilesRead
        )
    ]
    newest = max((entry.turn for entry in entries), default=0)
    kept = _kept_pictures(read)
    return {
        event.source: _seen(
            entry, event, _pictures(entry, event) if entry.turn == newest else kept[entry.seq]
        )
        for entry, event in read
    }


def _kept_pictures(read: list[tuple[Entry, ev.FilesRead]]) -> Mapping[int, list[ReadFile]]:
    """By entry. Those that leave change what was sent before, so they leave several at once, and
    seldom."""
    kept: list[tuple[int, ReadFile]] = []
    for entry, event in read:
        kept += ((entry.seq, file) for file in _pictures(entry, event))
        if len(kept) > MOST_PICTURES:
            kept = kept[-PICTURES_KEPT:]
    return {entry.seq: [file for seq, file in kept if seq == entry.seq] for entry, _ in read}


def _pictures(entry: Entry, event: ev.FilesRead) -> list[ReadFile]:
    return [file for file in event.files if file.kind == "picture" and entry.pictures]


def _seen(entry: Entry, event: ev.FilesRead, shown: list[ReadFile]) -> Seen:
    pictures = tuple(Picture(file.sha, file.mime, file.label) for file in shown)
    return Seen(tuple(_file(file, entry, shown=file in shown) for file in event.files), pictures)


def _file(file: ReadFile, entry: Entry, *, shown: bool) -> str:
    match file.kind:
        case "picture" if shown:
            return f"[picture: {file.label}]"
        case "picture" if entry.pictures:
            return f"[picture, seen before: {file.label}]"
        case "words" if entry.texts:
            return f"[{file.label}]\n{file.text}\n[end of {file.label}]"
        case "picture" | "words":
            return f"[{file.label}: {LEFT_OUT}]"
        case "refused":
            return f"[{file.label}: not read; tell the user why: {file.text}]"


def _paired(view: View, bodies: Bodies) -> list[ChatMessage]:
    """Results stand right behind the reply that called for them, all else keeps its order."""
    files = _files(view.entries, bodies)
    results = dict(_results(view.entries, bodies))
    messages: list[ChatMessage] = []
    taken: set[str] = set()
    for recorded in _in_order(view, bodies):
        match recorded.event:
            case ev.ModelReplied() as reply:
                messages += _reply(reply, results, taken)
            case ev.MessageReceived(inbound=inbound):
                messages.append(_message(inbound, files.get(recorded.seq)))
            case event:
                text = as_user(event)
                if text:
                    messages.append(UserMessage(text))
    return messages


def _in_order(view: View, bodies: Bodies) -> Iterator[ev.Recorded]:
    """A pin stands behind what was the last then, though a message that waited is older than it;
    where that has left, before what came later; and behind all older pins. So what comes before it
    stays as it is."""
    shown = {entry.seq for entry in view.entries}
    pins = list(view.pins)
    for entry in view.entries:
        while pins and entry.kind != "summary" and _is_older(pins[0], entry, shown):
            yield _as_event(pins.pop(0))
        if entry.seq in bodies:
            yield bodies[entry.seq]
        while any(pin.behind == entry.seq for pin in pins):
            yield _as_event(pins.pop(0))
    yield from map(_as_event, pins)


def _is_older(pin: Pin, entry: Entry, shown: Set[int]) -> bool:
    return pin.behind not in shown and pin.seq < entry.seq


def _as_event(pin: Pin) -> ev.Recorded:
    return ev.Recorded(pin.seq, _NEVER, ev.Pinned(text=pin.text))


def _results(
    entries: tuple[Entry, ...], bodies: Bodies
) -> Iterator[tuple[tuple[int, int, str], str]]:
    """What the model sees of each result, by the call that it belongs to."""
    for entry in entries:
        event = bodies[entry.seq].event if entry.seq in bodies else None
        if isinstance(event, ev.ToolFinished):
            text = _short(event) if entry.short else event.text
            yield (event.turn, event.step, event.call_id), text or "(empty)"


def _short(result: ev.ToolFinished) -> str:
    left_out = len(result.text) - SHORT_HEAD - SHORT_TAIL
    if left_out <= 0:
        return result.text
    where = f"; {way_to(result.artifact, SHORT_HEAD)}" if result.artifact else ""
    note = f"[… {left_out} characters left out, to make room{where} …]"
    return f"{result.text[:SHORT_HEAD]}\n{note}\n{result.text[-SHORT_TAIL:]}"


def _reply(
    reply: ev.ModelReplied, results: Mapping[tuple[int, int, str], str], taken: set[str]
) -> Iterable[ChatMessage]:
    """Models repeat ids from step to step and make up names that no tool can have; providers refuse
    a request that does."""
    shown: list[ToolCall] = []
    for call in reply.calls:
        name = call.id
        while name in taken:
            name += f"_{reply.turn}_{reply.step}"
        taken.add(name)
        shown.append(replace(call, id=name, name=_callable(call.name)))
    if reply.text.strip() or shown:
        yield AssistantMessage(reply.text, tuple(shown))
    for call, as_shown in zip(reply.calls, shown, strict=True):
        text = results.get((reply.turn, reply.step, call.id), NO_RESULT)
        yield ToolMessage(as_shown.id, as_shown.name, text)


def _callable(name: str) -> str:
    """What every vendor takes for the name of a tool."""
    return _NOT_IN_A_NAME.sub("_", name)[:LONGEST_NAME] or "_"


def _message(inbound: Inbound, seen: Seen | None) -> UserMessage:
    files = seen or Seen(tuple(_attachment(item) for item in inbound.attachments))
    quote = f"[replies to: {inbound.quote_shown}]" if inbound.quote.strip() else ""
    lines = [line for line in (quote, inbound.text, *files.lines) if line.strip()]
    text = "\n".join(lines) or "(an empty message)"
    named = inbound.address.chat_type != "dm" and inbound.user_name
    return UserMessage(f"{inbound.user_name}: {text}" if named else text, files.pictures)


def as_user(event: ev.Event) -> str:
    """What the model is told of it as if the user said it; "" for what it is not."""
    match event:
        case ev.ReminderDue():
            when = f"set for {event.due_at:%Y-%m-%d %H:%M:%S} UTC"
            late = (
                f", {event.late:.0f} s late since the service was down" if event.late > 60 else ""
            )
            return f"{REMINDER} ({when}{late}) Tell the user now: {event.text}"
        case ev.TurnInterrupted():
            return (
                f"{NOTE} You were interrupted at {event.since:%Y-%m-%d %H:%M:%S} UTC while you "
                "worked on this. Files, orders and remote state may have changed since: look again "
                "before you rely on them, and go on where you were."
            )
        case ev.TurnCancelled():
            return (
                f"{NOTE} This was stopped before it was finished. Do not go on with it unless you "
                "are asked to."
            )
        case ev.TurnFailed():
            return f"{NOTE} This could not be answered at the time."
        case ev.Pinned(text=text):
            return f"{PINNED} {text}"
        case ev.Compacted(summary=summary):
            return f"{SUMMARY} {summary}" if summary else ""
        case _:
            return ""


def _attachment(item: Attachment) -> str:
    """Of a message that was taken before files were read."""
    facts = [item.kind, item.name, item.mime, f"{item.size} bytes" if item.size >= 0 else ""]
    return f"[attached: {', '.join(fact for fact in facts if fact)}; you cannot open it yet]"


def _merge_users(messages: list[ChatMessage]) -> list[ChatMessage]:
    """A turn without an answer leaves two user messages side by side; providers refuse that."""
    merged: list[ChatMessage] = []
    for message in messages:
        last = merged[-1] if merged else None
        if isinstance(message, UserMessage) and isinstance(last, UserMessage):
            merged[-1] = UserMessage(
                f"{last.text}\n\n{message.text}", (*last.pictures, *message.pictures)
            )
        else:
            merged.append(message)
    return merged
