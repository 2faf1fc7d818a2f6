"""What the demo model sees in a conversation; reads the core's own markers and changes nothing."""

import re
from collections.abc import Sequence

import msgspec

from core.domain.context import NO_RESULT, NOTE, PINNED, REMINDER, SUMMARY
from core.domain.lifecycle import NOT_STARTED, STOPPED, UNKNOWN
from core.domain.messages import AssistantMessage, ChatMessage, ToolMessage, UserMessage

_REMINDER_HEAD = re.compile(rf"{re.escape(REMINDER)} \((?P<when>.*?)\) Tell the user now: ")
_NO_ASKS = (NOTE, SUMMARY, PINNED)
_OF_A_SUMMARY = ("#", "- ", "* ")
"""How its paragraphs begin, the first one excepted."""
_NAME = re.compile(r"\bmy name(?:'s| is) (?P<name>\w[\w'-]*)", re.IGNORECASE)


class Due(msgspec.Struct, frozen=True):
    text: str
    late: bool


class View(msgspec.Struct, frozen=True, kw_only=True):
    """``asks`` are what the user said last, by paragraph; ``results`` what came of the calls made
    for it; ``position`` counts the messages, so that ids of calls differ from step to step."""

    asks: tuple[str, ...]
    due: tuple[Due, ...]
    results: tuple[ToolMessage, ...]
    called: bool
    interrupted: bool
    unknown: tuple[str, ...]
    user_name: str
    position: int


def view_of(messages: Sequence[ChatMessage]) -> View:
    start = _turn_start(messages)
    turn = (*_steered_into(messages[:start]), *messages[start:])
    said = [part for message in turn for part in _paragraphs(message)]
    results = tuple(message for message in turn if isinstance(message, ToolMessage))
    return View(
        asks=tuple(part for part in said if not part.startswith((REMINDER, *_NO_ASKS))),
        due=tuple(_due(part) for part in said if part.startswith(REMINDER)),
        results=tuple(result for result in results if not _is_unknown(result)),
        called=any(isinstance(message, AssistantMessage) and message.calls for message in turn),
        interrupted=any(part.startswith(NOTE) for part in said),
        unknown=tuple(result.name for result in results if _is_unknown(result)),
        user_name=_user_name(messages),
        position=len(messages),
    )


def _turn_start(messages: Sequence[ChatMessage]) -> int:
    """The user message that the next reply answers; a note alone belongs to what it interrupted."""
    for index in range(len(messages) - 1, -1, -1):
        parts = _paragraphs(messages[index])
        if any(not part.startswith(_NO_ASKS) for part in parts):
            return index
    return len(messages)


def _steered_into(before: Sequence[ChatMessage]) -> tuple[ToolMessage, ...]:
    """Results that came just before a message which did not wait for the answer to them."""
    found: list[ToolMessage] = []
    for message in reversed(before):
        if not isinstance(message, ToolMessage) or message.text in (STOPPED, NOT_STARTED):
            break
        found.insert(0, message)
    return tuple(found)


def _paragraphs(message: ChatMessage) -> list[str]:
    if not isinstance(message, UserMessage):
        return []
    parts = [part.strip() for part in message.text.split("\n\n") if part.strip()]
    if not any(part.startswith(SUMMARY) for part in parts):
        return parts
    return [part for part in parts if not part.startswith(_OF_A_SUMMARY)]


def _due(part: str) -> Due:
    head = _REMINDER_HEAD.match(part)
    if head is None:
        return Due(part.removeprefix(REMINDER).strip(), late=False)
    return Due(part[head.end() :], late="late" in head["when"])


def _is_unknown(result: ToolMessage) -> bool:
    return result.text in (UNKNOWN, NO_RESULT)


def _user_name(messages: Sequence[ChatMessage]) -> str:
    found = [
        match["name"]
        for message in messages
        if isinstance(message, UserMessage)
        for match in _NAME.finditer(message.text)
    ]
    return found[-1] if found else ""
