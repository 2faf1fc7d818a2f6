"""Makes whatever comes from outside storable; nothing enters the log but through here."""

import base64
import math
import re
import reprlib
from datetime import UTC, datetime
from typing import cast

import msgspec

TEXT_LIMIT = 16_000
"""Characters of one result that the context sees at most; the whole is kept as an artifact."""
_HEAD = 0.75
"""The share of the beginning in what is shown of a longer one."""
_INT_LIMIT = 2**63
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def clean(text: str) -> str:
    """NUL and lone surrogates, which PostgreSQL and UTF-8 refuse, become U+FFFD; the two halves of
    an emoji that a stream has cut are one again."""
    if _UNSTORABLE.search(text) is None:
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\0", _REPLACEMENT)


def storable(value: object) -> Json:
    """Any Python value as JSON: times as ISO 8601 UTC, decimals as text, sets as lists, bytes as
    base64 with their type, NaN and infinities as null, all that is unknown as its text."""
    try:
        plain = msgspec.to_builtins(
            value, builtin_types=(bytes, bytearray, datetime), str_keys=True, enc_hook=str
        )
        return _clean(plain)
    except (RecursionError, TypeError, ValueError, OverflowError):
        return clean(_shown(value))


def _shown(value: object) -> str:
    try:
        return repr(value)
    except RecursionError:
        return reprlib.repr(value)


def _clean(value: object) -> Json:
    match value:
        case str():
            return clean(value)
        case bool() | None:
            return value
        case int():
            return value if abs(value) < _INT_LIMIT else str(value)
        case float():
            return value if math.isfinite(value) else None
        case bytes() | bytearray():
            return {"type": "bytes", "base64": base64.b64encode(value).decode()}
        case datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return aware.astimezone(UTC).isoformat()
        case dict():
            items = cast("dict[object, object]", value).items()
            return {clean(str(key)): _clean(item) for key, item in items}
        case _:
            return [_clean(item) for item in cast("list[object]", value)]


def as_text(value: object) -> str:
    """The text of a tool's result: a string as it is, all else as JSON."""
    plain = storable(value)
    return plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()


def is_small(text: str, most: int) -> bool:
    """Whether the context may carry it whole; ``most`` in bytes of UTF-8."""
    return len(text) <= TEXT_LIMIT and len(text.encode()) <= most


def beginning(text: str, most: int, characters: int = TEXT_LIMIT) -> str:
    """As much of it as ``most`` bytes hold."""
    return text[:characters].encode()[: max(most, 0)].decode(errors="ignore")


def ending(text: str, most: int, characters: int = TEXT_LIMIT) -> str:
    """As much of it as ``most`` bytes hold."""
    data = text[max(len(text) - characters, 0) :].encode()
    return data[max(len(data) - max(most, 0), 0) :].decode(errors="ignore")


def capped(text: str, artifact: str, most: int) -> str:
    """Head, tail and size of a text that is longer than the context may carry, note included;
    ``most`` in bytes of UTF-8, of which the note alone takes some 250."""
    if is_small(text, most):
        return text
    longest = f"\n{_note(len(text), text, artifact, len(text))}\n"
    room, characters = most - len(longest.encode()), TEXT_LIMIT - len(longest)
    head = beginning(text, int(room * _HEAD), int(characters * _HEAD))
    tail = ending(text, int(room * (1 - _HEAD)), int(characters * (1 - _HEAD)))
    note = _note(len(text) - len(head) - len(tail), text, artifact, len(head))
    return f"{head}\n{note}\n{tail}"


def _note(left_out: int, text: str, artifact: str, offset: int) -> str:
    way = way_to(artifact, offset)
    return f"[… {left_out} of {len(text)} characters left out; {way} …]"


def way_to(artifact: str, offset: int) -> str:
    """How the model comes by what it is not shown."""
    return f'to read on from there call read_result with id "{artifact}" and offset {offset}'
