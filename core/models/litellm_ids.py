"""Ids of calls as every vendor takes them, each call with its results; it never makes two one.

Models of different vendors answer in one conversation, and each takes less than another makes up:
OpenAI has at most 40 characters, Anthropic letters, digits, «_» and «-».
"""

import hashlib
import re
from collections.abc import Iterator

from msgspec.structs import replace

from core.domain.messages import AssistantMessage, ChatMessage, ToolMessage

LONGEST = 40
SIGNATURE = "__thought__"
"""What litellm puts between the id of a call of Gemini's and the thought behind it, which Gemini
wants back."""
_NOT_IN_AN_ID = re.compile(r"[^a-zA-Z0-9_-]")
_HEAD = 27


def with_legal_ids(messages: tuple[ChatMessage, ...], *, signed: bool) -> Iterator[ChatMessage]:
    """The same beginning gets the same ids, whatever follows. ``signed`` ids keep what is theirs:
    for Gemini alone."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    for message in messages:
        match message:
            case AssistantMessage(text, calls):
                for call in calls:
                    _give(call.id, given, taken, signed=signed)
                yield AssistantMessage(text, tuple(replace(c, id=given[c.id]) for c in calls))
            case ToolMessage(call_id):
                _give(call_id, given, taken, signed=signed)
                yield replace(message, call_id=given[call_id])
            case _:
                yield message


def _give(call_id: str, given: dict[str, str], taken: set[str], *, signed: bool) -> None:
    if call_id in given:
        return
    legal = call_id if signed and SIGNATURE in call_id else _legal(call_id)
    number = 0
    while legal in taken:
        number += 1
        legal = _renamed(call_id, number)
    given[call_id] = legal
    taken.add(legal)


def _legal(call_id: str) -> str:
    bare = call_id.partition(SIGNATURE)[0]
    fits = bare and len(bare) <= LONGEST and not _NOT_IN_AN_ID.search(bare)
    return bare if fits else _renamed(call_id, 0)


def _renamed(call_id: str, number: int) -> str:
    data = f"{number} {call_id}".encode(errors="surrogatepass")
    name = hashlib.blake2b(data, digest_size=6).hexdigest()
    return f"{_NOT_IN_AN_ID.sub('_', call_id)[:_HEAD]}_{name}"
