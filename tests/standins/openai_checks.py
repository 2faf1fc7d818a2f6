"""What OpenAI refuses in a chat request, as texts; it never changes the request.

Two rules are other vendors', kept here since a log must be legal for every one of them: no empty
message, and tool arguments that are JSON.
"""

import base64
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from PIL import Image

from tests.standins.tokens import Piece, schema, words

Json = dict[str, Any]
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
PICTURE = re.compile(r"data:image/(jpeg|png|gif|webp);base64,([A-Za-z0-9+/]+=*)")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
LONGEST_ID = 40
TOKENS_A_MESSAGE = 4
PICTURE_TOKENS = 1105
"""Of one with sides of up to 1568 pixels."""


def pieces(request: Json) -> Iterator[Piece]:
    """Of the prompt: the tools come first."""
    tools: list[Json] = request.get("tools") or []
    messages: list[Json] = request.get("messages") or []
    yield from (Piece(schema(tool)) for tool in tools)
    for message in messages:
        pictures = [part for part in _parts(message) if part.get("type") == "image_url"]
        said = [part for part in _parts(message) if part not in pictures]
        content: Any = said if pictures else message.get("content")
        more = len(pictures) * PICTURE_TOKENS + TOKENS_A_MESSAGE
        yield Piece(words({**message, "content": content}), more, unread=words(pictures))


def violations(request: Json) -> list[str]:
    messages: list[Json] = request.get("messages") or []
    return [
        *_about_request(request, messages),
        *(text for index, message in enumerate(messages) for text in _about(index, message)),
        *_about_pairs(messages),
    ]


def _about_request(request: Json, messages: list[Json]) -> Iterator[str]:
    if not request.get("model"):
        yield "you must provide a model parameter"
    if not messages:
        yield "'messages' is too short - minimum length 1"
    if not any(message.get("role") == "user" for message in messages):
        yield "there is no user message"
    if "tools" in request and not request["tools"]:
        yield "'tools' is too short - minimum length 1"
    tools: list[Json] = request.get("tools") or []
    for tool in tools:
        if not TOOL_NAME.fullmatch(tool["function"]["name"]):
            yield f"tool name {tool['function']['name']!r} is not allowed"


def _about(index: int, message: Json) -> Iterator[str]:
    where = f"messages[{index}]"
    role = message.get("role")
    if role not in ROLES:
        yield f"{where}: invalid role {role!r}"
    for name, call_id in _ids(message):
        if len(call_id) > LONGEST_ID:
            yield (
                f"Invalid '{where}.{name}': string too long. Expected a string with maximum length "
                f"{LONGEST_ID}, but got a string with length {len(call_id)} instead."
            )
    if role == "assistant" and "tool_calls" in message:
        yield from _about_calls(where, message["tool_calls"])
    elif role == "tool" and not isinstance(message.get("content"), str | list):
        yield f"{where}: a tool message needs content"
    elif role != "tool" and not message.get("content"):
        yield f"{where}: empty {role} message"
    content = message.get("content")
    if isinstance(content, list):
        for part in content:  # pyright: ignore[reportUnknownVariableType]
            yield from _about_part(where, role, part)  # pyright: ignore[reportUnknownArgumentType]


def _ids(message: Json) -> Iterator[tuple[str, str]]:
    for index, call in enumerate(message.get("tool_calls") or []):
        yield f"tool_calls[{index}].id", str(call.get("id", ""))
    yield "tool_call_id", str(message.get("tool_call_id", ""))


def _parts(message: Json) -> list[Json]:
    content: Any = message.get("content")
    return content if isinstance(content, list) else []  # pyright: ignore[reportUnknownVariableType]


def _about_part(where: str, role: Any, part: Json) -> Iterator[str]:
    match part:
        case {"type": "text", "text": str(text)} if text:
            return
        case {"type": "image_url", "image_url": {"url": str(url)}} if role == "user":
            if not is_picture(url):
                yield f"{where}: invalid image data"
        case _:
            yield f"{where}: invalid content part of type {part.get('type')!r}"


def is_picture(url: str) -> bool:
    """By its bytes, which have to be of the kind that is named."""
    found = PICTURE.fullmatch(url)
    if found is None:
        return False
    try:
        with Image.open(io.BytesIO(base64.b64decode(found[2], validate=True))) as picture:
            picture.verify()
            return picture.format == found[1].upper()
    except (OSError, SyntaxError, ValueError):
        return False


def _about_calls(where: str, calls: list[Json] | None) -> Iterator[str]:
    if not calls:
        yield f"{where}.tool_calls: empty array, expected minimum length 1"
    ids = [call.get("id") for call in calls or []]
    if len(set(ids)) < len(ids) or not all(ids):
        yield f"{where}.tool_calls: ids are missing or doubled: {ids}"
    for call in calls or []:
        if not TOOL_NAME.fullmatch(call["function"]["name"]):
            yield f"{where}.tool_calls: bad name {call['function']['name']!r}"
        if not is_json_object(call["function"].get("arguments")):
            yield f"{where}.tool_calls: arguments are not a JSON object"


def _about_pairs(messages: list[Json]) -> Iterator[str]:
    owed: set[Any] = set()
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in owed:
                yield (
                    f"messages[{index}]: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'"
                )
            owed.discard(message.get("tool_call_id"))
            continue
        if owed:
            yield _unanswered(owed)
        calls: list[Json] = message.get("tool_calls") or []
        owed = {call.get("id") for call in calls}
    if owed:
        yield _unanswered(owed)


def _unanswered(ids: set[Any]) -> str:
    return (
        "an assistant message with 'tool_calls' must be followed by tool messages responding to "
        f"each 'tool_call_id'; no response for: {', '.join(sorted(map(str, ids)))}"
    )


def is_json_object(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False
