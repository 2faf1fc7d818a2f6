"""What Telegram accepts and what a reader must find, told without any code of the renderer."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

import regex

from core.domain.messages import Part

STYLES = {"bold", "italic", "underline", "strikethrough", "spoiler"}
KINDS = STYLES | {"code", "pre", "text_link", "blockquote"}
FIELDS = {"text_link": {"url"}, "pre": {"language"}}
WORD = regex.compile(r"q\d+z")


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def of(part: Part, entity: dict[str, Any]) -> str:
    """The text of an entity. Raises where it begins or ends within a surrogate pair."""
    data = part.text.encode("utf-16-le")
    start, end = entity["offset"], entity["offset"] + entity["length"]
    return data[2 * start : 2 * end].decode("utf-16-le")


def entities(parts: Iterable[Part], kind: str) -> list[str]:
    return [of(part, entity) for part in parts for entity in part.markup if entity["type"] == kind]


def graphemes(text: str) -> list[str]:
    return [cluster for cluster in regex.findall(r"\X", text) if not cluster.isspace()]


def words(text: str) -> list[str]:
    """In order, each once: the head of a table may be said again."""
    return list(dict.fromkeys(WORD.findall(text)))


def texts(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts)


def twins(parts: Iterable[Part]) -> str:
    return "".join(part.plain for part in parts)


def hidden(parts: Iterable[Part]) -> set[str]:
    """The words of addresses and languages."""
    values = [
        entity.get("url", "") + " " + entity.get("language", "")
        for part in parts
        for entity in part.markup
    ]
    return set(WORD.findall(" ".join(values)))


def check(parts: Iterable[Part], limit: int) -> None:
    faults = [fault for part in parts for fault in (*_text_faults(part, limit), *_faults(part))]
    assert faults == []


def _text_faults(part: Part, limit: int) -> Iterator[object]:
    for text in (part.text, part.plain):
        if not 0 < utf16(text) <= limit:
            yield "length", utf16(text)
        if not regex.search(r"[^\s\p{Z}\p{Cc}\p{Cf}]", text) or text != text.rstrip():
            yield "blank", text
    in_block = any(entity["type"] == "pre" and entity["offset"] == 0 for entity in part.markup)
    if not in_block and regex.findall(r"\X", part.text)[0].isspace():
        yield "leading space", part.text


def _faults(part: Part) -> Iterator[object]:
    end = utf16(part.text)
    ranges = [(entity["offset"], -entity["length"]) for entity in part.markup]
    if ranges != sorted(ranges) or len(ranges) > 100:
        yield "order or number", ranges
    for entity in part.markup:
        kind = entity["type"]
        allowed = {"type", "offset", "length"} | FIELDS.get(kind, set())
        if kind not in KINDS or not set(entity) <= allowed:
            yield "fields", entity
        if entity["offset"] < 0 or entity["length"] <= 0 or ranges_end(entity) > end:
            yield "range", entity
        text = of(part, entity)
        if not text.strip() or (kind != "pre" and text != text.strip()):
            yield "spaces", entity, text
        if kind == "text_link" and not entity.get("url"):
            yield "no address", entity
    for outer, inner in combinations(part.markup, 2):
        if not _may_meet(outer, inner):
            yield "overlap", outer, inner


def ranges_end(entity: dict[str, Any]) -> int:
    return entity["offset"] + entity["length"]


def _may_meet(outer: dict[str, Any], inner: dict[str, Any]) -> bool:
    """Disjoint, or nested as the Bot API page allows; the two come sorted."""
    if inner["offset"] >= ranges_end(outer):
        return True
    if ranges_end(inner) > ranges_end(outer):
        return False
    one, other = outer["type"], inner["type"]
    if "pre" in (one, other) or one == other:
        return False
    if "code" in (one, other):
        return one == "blockquote"
    return one in STYLES | {"blockquote"} or other in STYLES
