"""Telegram's rules for texts and entities; it refuses what Telegram would, and mends nothing.

Lengths and offsets are UTF-16 units (core.telegram.org/bots/api, MessageEntity and sendMessage).
"""

from itertools import accumulate
from typing import Any

import msgspec

from tests.standins.faults import Refuse, RefusedError

MAX_TEXT = 4096
MAX_CAPTION = 1024
MAX_ENTITIES = 100  # Telegram ignores what comes after

STYLES = frozenset({"bold", "italic", "underline", "strikethrough", "spoiler"})
CODES = frozenset({"code", "pre"})
QUOTES = frozenset({"blockquote", "expandable_blockquote"})
OTHERS = frozenset(
    {"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"}
    | {"text_link", "text_mention", "custom_emoji", "date_time"}
)
KNOWN = STYLES | CODES | QUOTES | OTHERS
NEEDS = {"text_link": "url", "text_mention": "user", "custom_emoji": "custom_emoji_id"}


class Entity(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None
    user: dict[str, Any] | None = None
    custom_emoji_id: str | None = None

    @property
    def end(self) -> int:
        return self.offset + self.length

    def part_of(self, text: str) -> str:
        """The characters it covers."""
        units = text.encode("utf-16-le")
        return units[2 * self.offset : 2 * self.end].decode("utf-16-le")


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def checked_text(text: str, raw_entities: Any, limit: int) -> tuple[str, tuple[Entity, ...]]:
    """What Telegram would show: white space at the end goes, entities past the hundredth too."""
    entities = _parse(raw_entities)
    _check_entities(text, entities)
    shown = text.rstrip()
    length = utf16_length(shown)
    if length > limit:
        what = "message is too long" if limit == MAX_TEXT else "message caption is too long"
        raise bad_request(what)
    cut = (_shorten(entity, length) for entity in entities[:MAX_ENTITIES])
    return shown, tuple(entity for entity in cut if entity.length > 0)


def bad_request(reason: str) -> RefusedError:
    return RefusedError(Refuse(400, f"Bad Request: {reason}"))


def _shorten(entity: Entity, length: int) -> Entity:
    return msgspec.structs.replace(entity, length=min(entity.length, length - entity.offset))


def _parse(raw: Any) -> list[Entity]:
    try:
        return msgspec.convert(raw or [], list[Entity])
    except msgspec.ValidationError as error:
        raise _cannot_parse(str(error)) from error


def _check_entities(text: str, entities: list[Entity]) -> None:
    borders = {0, *accumulate(utf16_length(character) for character in text)}
    for entity in entities:
        _check_one(entity, borders)
    _check_nesting(entities)


def _check_one(entity: Entity, borders: set[int]) -> None:
    if entity.type not in KNOWN:
        raise _cannot_parse(f"unsupported entity type {entity.type!r}")
    if entity.offset < 0 or entity.length <= 0 or entity.end > max(borders):
        raise _cannot_parse(f"{entity.type} has no place at {entity.offset}+{entity.length}")
    if not {entity.offset, entity.end} <= borders:
        raise _cannot_parse(f"{entity.type} at {entity.offset} splits a UTF-16 surrogate pair")
    needed = NEEDS.get(entity.type)
    if needed and not getattr(entity, needed):
        raise _cannot_parse(f"{entity.type} needs {needed}")


def _check_nesting(entities: list[Entity]) -> None:
    open_ones: list[Entity] = []
    for entity in sorted(entities, key=_outermost_first):
        while open_ones and open_ones[-1].end <= entity.offset:
            open_ones.pop()
        for outer in open_ones:
            if entity.end > outer.end:
                raise _cannot_parse(f"{outer.type} and {entity.type} overlap at {entity.offset}")
            if not _may_contain(outer.type, entity.type):
                raise _cannot_parse(f"{outer.type} can't contain {entity.type}")
        open_ones.append(entity)


def _outermost_first(entity: Entity) -> tuple[int, int, bool]:
    return entity.offset, -entity.length, entity.type not in QUOTES


def _may_contain(outer: str, inner: str) -> bool:
    if outer in CODES:
        return False
    if inner in CODES or outer in QUOTES:
        return outer in QUOTES and inner not in QUOTES
    return outer in STYLES or inner in STYLES


def _cannot_parse(reason: str) -> RefusedError:
    return bad_request(f"can't parse entities: {reason}")
