"""What the model is shown: a legal conversation out of any log; never reads a body twice."""

import re
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from core.domain import events as ev
from core.domain.messages import (
    AssistantMessage,
    Attachment,
    ChatMessage,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from core.domain.state import SessionState

REMINDER = "[reminder]"
NOTE = "[note]"
SUMMARY = "[summary]"
LONGEST_NAME = 64
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
NO_RESULT = "No result was recorded; check before you repeat it."

Bodies = Mapping[int, ev.Recorded]


def wanted_bodies(state: SessionState) -> tuple[int, ...]:
    """The sequence numbers of the events that the request is made of."""
    return tuple(sorted(entry.seq for entry in state.session.entries)) if state.session else ()


def build_request(
    state: SessionState, bodies: Bodies, system_prompt: str, tools: tuple[ToolSpec, ...]
) -> ModelRequest:
    """Whatever the log holds: calls are followed by their results, roles alternate, a user speaks.

    Two requests of one session share their beginning to the byte, until entries leave it.
    """
    entries = state.session.entries if state.session else ()
    events = [bodies[entry.seq] for entry in entries if entry.seq in bodies]
    messages = _merge_users(_paired(events))
    if not any(isinstance(message, UserMessage) for message in messages):
        messages.append(UserMessage(f"{NOTE} Please go on."))
    return ModelRequest((SystemMessage(system_prompt), *messages), tools)


def _paired(events: list[ev.Recorded]) -> list[ChatMessage]:
    """Results stand right behind the reply that called for them, all else keeps its order."""
    results = {
        (recorded.event.turn, recorded.event.step, recorded.event.call_id): recorded.event
        for recorded in events
        if isinstance(recorded.event, ev.ToolFinished)
    }
    messages: list[ChatMessage] = []
    taken: set[str] = set()
    for recorded in events:
        match recorded.event:
            case ev.ModelReplied() as reply:
                messages += _reply(reply, results, taken)
            case event:
                text = _as_user(event)
                if text:
                    messages.append(UserMessage(text))
    return messages


def _reply(
    reply: ev.ModelReplied,
    results: Mapping[tuple[int, int, str], ev.ToolFinished],
    taken: set[str],
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
        found = results.get((reply.turn, reply.step, call.id))
        text = found.text or "(empty)" if found else NO_RESULT
        yield ToolMessage(as_shown.id, as_shown.name, text)


def _callable(name: str) -> str:
    """What every vendor takes for the name of a tool."""
    return _NOT_IN_A_NAME.sub("_", name)[:LONGEST_NAME] or "_"


def _as_user(event: ev.Event) -> str:
    match event:
        case ev.MessageReceived(inbound=inbound):
            lines = [inbound.text, *(_attachment(item) for item in inbound.attachments)]
            text = "\n".join(line for line in lines if line.strip()) or "(an empty message)"
            named = inbound.address.chat_type != "dm" and inbound.user_name
            return f"{inbound.user_name}: {text}" if named else text
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
        case ev.Compacted(summary=summary):
            return f"{SUMMARY} {summary}" if summary else ""
        case _:
            return ""


def _attachment(item: Attachment) -> str:
    facts = [item.kind, item.name, item.mime, f"{item.size} bytes" if item.size >= 0 else ""]
    return f"[attached: {', '.join(fact for fact in facts if fact)}; you cannot open it yet]"


def _merge_users(messages: list[ChatMessage]) -> list[ChatMessage]:
    """A turn without an answer leaves two user messages side by side; providers refuse that."""
    merged: list[ChatMessage] = []
    for message in messages:
        last = merged[-1] if merged else None
        if isinstance(message, UserMessage) and isinstance(last, UserMessage):
            merged[-1] = UserMessage(f"{last.text}\n\n{message.text}")
        else:
            merged.append(message)
    return merged
