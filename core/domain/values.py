"""Makes whatever comes from outside storable; nothing enters the log but through here."""

import base64
import math
import re
import reprlib
from datetime import UTC, datetime
from typing import cast

import msgspec

TEXT_LIMIT = 16_000
"""Characters of one result that the context sees; the rest is kept as an artifact."""
_HEAD = TEXT_LIMIT * 3 // 4
_TAIL = TEXT_LIMIT // 4
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


def capped(text: str, artifact: str) -> str:
    """Head, tail and size of a text that is longer than the context may carry."""
    if len(text) <= TEXT_LIMIT:
        return text
    left_out = len(text) - _HEAD - _TAIL
    note = f"[… {left_out} of {len(text)} characters left out; the whole is kept as {artifact} …]"
    return f"{text[:_HEAD]}\n{note}\n{text[-_TAIL:]}"
