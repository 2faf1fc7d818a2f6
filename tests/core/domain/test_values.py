import base64
import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.values import TEXT_LIMIT, as_text, capped, clean, is_small, storable

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.characters(categories=["Cs"])
    | st.binary()
    | st.decimals()
    | st.datetimes()
    | st.datetimes(timezones=st.just(timezone(timedelta(hours=-14))))
    | st.dates()
    | st.timedeltas()
    | st.uuids()
    | st.complex_numbers()
    | st.builds(object)
)
hashable = st.integers() | st.text() | st.booleans() | st.none() | st.dates()
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.frozensets(hashable)
        | st.dictionaries(hashable, inner)
    ),
    max_leaves=10,
)


class Color(Enum):
    RED = "red"


@given(values)
def test_whatever_a_tool_returns_can_be_stored(value: Any) -> None:
    text = json.dumps(storable(value), allow_nan=False, ensure_ascii=False)

    text.encode()
    assert "\\u0000" not in text.replace("\\\\", "")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (
            datetime(2026, 5, 5, 16, tzinfo=timezone(timedelta(hours=2))),
            "2026-05-05T14:00:00+00:00",
        ),
        (datetime(2026, 5, 5, 14, tzinfo=UTC), "2026-05-05T14:00:00+00:00"),
        (date(2026, 5, 5), "2026-05-05"),
        (Decimal("1.10"), "1.10"),
        ({3}, [3]),
        ((1, "a"), [1, "a"]),
        (b"\x00\xff", {"type": "bytes", "base64": base64.b64encode(b"\x00\xff").decode()}),
        (float("nan"), None),
        (float("-inf"), None),
        ({1: "a"}, {"1": "a"}),
        (2**70, str(2**70)),
        ("a\x00b\ud83d", "a\ufffdb\ufffd"),
        ({"k\x00": ["\udfff"]}, {"k\ufffd": ["\ufffd"]}),
        (Color.RED, "red"),
    ],
)
def test_what_json_cannot_carry_is_told_in_a_known_form(value: Any, stored: Any) -> None:
    assert storable(value) == stored


def test_what_has_no_end_is_stored_as_words() -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert isinstance(storable(endless), str)
    assert isinstance(storable(deep), str)


def test_a_time_at_the_edge_of_the_calendar_is_stored() -> None:
    edge = datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))

    assert isinstance(storable([edge]), str | list)


def test_text_stays_as_it_is_and_all_else_becomes_json() -> None:
    assert as_text("plain {text}") == "plain {text}"
    assert json.loads(as_text({"a": [1, None]})) == {"a": [1, None]}


def test_an_emoji_stays_whole() -> None:
    assert clean("👩‍👩‍👧 ok") == "👩‍👩‍👧 ok"


@pytest.mark.parametrize(
    ("cut", "mended"),
    [
        ("\ud83d\ude00!", "😀!"),
        ("\ud83d!", "\ufffd!"),
        ("!\ud83d", "!\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("😀\0\ud83d\ude00", "😀\ufffd😀"),
    ],
)
def test_an_emoji_cut_in_half_is_made_whole_or_marked(cut: str, mended: str) -> None:
    assert clean(cut) == mended


def test_a_long_result_keeps_its_head_tail_and_size() -> None:
    long = "head" + "x" * 3 * TEXT_LIMIT + "tail"

    shown = capped(long, "art1", 4 * TEXT_LIMIT)

    assert shown.startswith("head")
    assert shown.endswith("tail")
    assert f"of {len(long)} characters left out" in shown
    assert len(shown) <= TEXT_LIMIT
    assert capped("x" * TEXT_LIMIT, "art1", 4 * TEXT_LIMIT) == "x" * TEXT_LIMIT


@pytest.mark.parametrize("script", ["x", "é", "漢", "😀", "x漢😀"])
@pytest.mark.parametrize("most", [1_000, 3_001, 64_000])
def test_a_result_in_any_script_keeps_within_its_bytes(script: str, most: int) -> None:
    long = script * 40_000

    shown = capped(long, "art1", most)
    head, tail = shown.split("\n")[0], shown.split("\n")[-1]

    assert is_small(shown, most)
    assert len(head) > 2 * len(tail) > 0
    assert long.startswith(head)
    assert long.endswith(tail)
    assert f"{len(long) - len(head) - len(tail)} of {len(long)} characters left out" in shown
    assert f"offset {len(head)}" in shown
