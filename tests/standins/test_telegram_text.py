"""Entities and lengths as Telegram takes them."""

from typing import Any

import pytest

from tests.standins.faults import RefusedError
from tests.standins.telegram_text import MAX_ENTITIES, MAX_TEXT, Entity, checked_text, utf16_length

WAVE = "👋"


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


LINK = {"url": "https://example.org"}
LEGAL = {
    "none": [],
    "side by side": [entity("bold", 0, 4), entity("code", 4, 2)],
    "link in bold": [entity("bold", 0, 10), entity("text_link", 2, 3, **LINK)],
    "bold in link": [entity("text_link", 0, 10, **LINK), entity("bold", 2, 3)],
    "same place": [entity("bold", 0, 4), entity("italic", 0, 4)],
    "code in quote": [entity("pre", 0, 4, language="python"), entity("blockquote", 0, 4)],
    "to the end": [entity("spoiler", 9, 3)],
}
ILLEGAL = {
    "past the end": [entity("bold", 8, 5)],
    "before the start": [entity("bold", -1, 3)],
    "empty": [entity("bold", 2, 0)],
    "crossing": [entity("bold", 0, 4), entity("italic", 2, 4)],
    "bold in code": [entity("code", 0, 8), entity("bold", 2, 2)],
    "code in bold": [entity("bold", 0, 8), entity("code", 2, 2)],
    "code as bold": [entity("bold", 0, 4), entity("code", 0, 4)],
    "link in link": [entity("text_link", 0, 8, **LINK), entity("text_link", 1, 2, **LINK)],
    "quote in quote": [entity("blockquote", 0, 8), entity("expandable_blockquote", 1, 2)],
    "half a wave at its start": [entity("bold", 11, 1)],
    "half a wave at its end": [entity("bold", 9, 2)],
    "unknown": [entity("blink", 0, 1)],
    "link without url": [entity("text_link", 0, 1)],
    "not a number": [{"type": "bold", "offset": "0", "length": 1}],
}


@pytest.mark.parametrize("entities", LEGAL.values(), ids=LEGAL.keys())
def test_legal_entities_are_kept(entities: list[dict[str, Any]]) -> None:
    text, kept = checked_text(f"0123456789{WAVE}", entities, MAX_TEXT)
    assert text == f"0123456789{WAVE}"
    assert [(e.type, e.offset, e.length) for e in kept] == [
        (e["type"], e["offset"], e["length"]) for e in entities
    ]


@pytest.mark.parametrize("entities", ILLEGAL.values(), ids=ILLEGAL.keys())
def test_illegal_entities_are_refused(entities: list[dict[str, Any]]) -> None:
    with pytest.raises(RefusedError, match="can't parse entities"):
        checked_text(f"0123456789{WAVE}", entities, MAX_TEXT)


def test_length_is_counted_in_utf_16_units() -> None:
    assert utf16_length(checked_text(WAVE * 2048, [], MAX_TEXT)[0]) == 4096
    with pytest.raises(RefusedError, match="message is too long"):
        checked_text(WAVE * 2048 + "x", [], MAX_TEXT)


def test_white_space_at_the_end_is_not_shown() -> None:
    shown = checked_text("hello \n\n", [entity("bold", 0, 8), entity("code", 6, 2)][:1], MAX_TEXT)
    assert shown == ("hello", (Entity("bold", 0, 5),))


def test_entities_past_the_hundredth_are_not_shown() -> None:
    many = [entity("bold", place, 1) for place in range(MAX_ENTITIES + 1)]
    assert len(checked_text("x" * 200, many, MAX_TEXT)[1]) == MAX_ENTITIES


def test_an_entity_knows_its_characters() -> None:
    assert Entity("bold", 2, 4).part_of(f"a {WAVE}bc d") == f"{WAVE}bc"
