"""What is stored is read back, old versions too; what cannot be read is named, not guessed."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.domain.events import ModelReplied, Recorded, ToolFinished
from core.domain.state import SCHEMA_VERSION, SessionState
from core.errors import BrokenDataError
from storage.codec import Codec, EventRow, clean, micros, moment, snapshot, snapshot_text
from tests.contract.values import KEY, at

ROW = EventRow(7, micros(at()), "TurnFinished", 1, None, '{"type":"TurnFinished","turn":3}')


@given(st.text(st.characters(codec=None)))
def test_any_text_comes_back_as_clean_text(text: str) -> None:
    event = ToolFinished(turn=1, step=1, call_id=text, outcome="ok", text=text)
    codec = Codec()
    back = codec.recorded(KEY, codec.event_row(Recorded(1, at(), event)))
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    expected = whole.replace("\0", "\ufffd")
    assert back == Recorded(1, at(), replace(event, call_id=expected, text=expected))
    assert clean(expected) == expected


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_keeps_its_microseconds(value: datetime) -> None:
    assert moment(micros(value)) == value


def _renamed(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "turn": data["number"]}


def _became_a_reply(data: dict[str, Any]) -> dict[str, Any]:
    return {"type": "ModelReplied", "turn": data["turn"], "step": 1, "text": data["said"]}


OLD = EventRow(1, micros(at()), "Spoke", -1, None, '{"type":"Spoke","number":4,"said":"x"}')


def test_an_old_event_becomes_the_event_of_today_step_by_step() -> None:
    codec = Codec({("Spoke", -1): _renamed, ("Spoke", 0): _became_a_reply})
    assert codec.recorded(KEY, OLD) == Recorded(1, at(), ModelReplied(turn=4, step=1, text="x"))


def test_an_old_event_whose_way_is_broken_off_cannot_be_read() -> None:
    with pytest.raises(BrokenDataError, match=f"{KEY}@1"):
        Codec({("Spoke", -1): _renamed}).recorded(KEY, OLD)
    with pytest.raises(BrokenDataError, match=f"{KEY}@1"):
        Codec({("Spoke", -1): _became_a_reply}).recorded(KEY, OLD)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"version": 2}, id="a newer version"),
        pytest.param({"version": 0}, id="an older version without a way"),
        pytest.param({"type": "Unheard"}, id="an unknown event"),
        pytest.param({"data": "{"}, id="not JSON"),
        pytest.param({"data": '{"type":"TurnFinished"}'}, id="a field is missing"),
        pytest.param({"data": '{"type":"TurnFinished","turn":"3"}'}, id="a field is wrong"),
    ],
)
def test_what_cannot_be_read_says_where_it_is(changes: dict[str, Any]) -> None:
    Codec().recorded(KEY, ROW)
    with pytest.raises(BrokenDataError, match=f"{KEY}@7"):
        Codec().recorded(KEY, replace(ROW, **changes))


def test_a_snapshot_of_another_version_or_place_is_passed_over() -> None:
    state = SessionState(key=KEY, seq=5)
    text = snapshot_text(state)
    assert snapshot(KEY, 5, SCHEMA_VERSION, text) == state
    assert snapshot(KEY, 5, SCHEMA_VERSION + 1, text) is None
    assert snapshot(KEY, 4, SCHEMA_VERSION, text) is None
    assert snapshot("other", 5, SCHEMA_VERSION, text) is None
    assert snapshot(KEY, 5, SCHEMA_VERSION, text[:-1]) is None
