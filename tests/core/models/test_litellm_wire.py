from types import SimpleNamespace
from typing import Any

import pytest

from core.domain.messages import (
    AssistantMessage,
    ModelReply,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from core.models.litellm_wire import EMPTY, Assembly, messages_of
from tests.core.models.harness import failure_of, reply_of

Piece = tuple[int | None, str | None, str | None, str | None]


def chunk(text: str | None = None, *pieces: Piece, finish: str | None = None) -> Any:
    calls = [
        SimpleNamespace(
            index=index, id=call_id, function=SimpleNamespace(name=name, arguments=arguments)
        )
        for index, call_id, name, arguments in pieces
    ]
    delta = SimpleNamespace(content=text, tool_calls=calls or None)
    return SimpleNamespace(model="m", choices=[SimpleNamespace(delta=delta, finish_reason=finish)])


def whole(*chunks: Any, finish: str = "tool_calls") -> ModelReply:
    assembly = Assembly()
    for each in (*chunks, chunk(finish=finish)):
        assembly.add(each)
    return reply_of(assembly.finish(Usage()))


def test_without_a_reason_to_end_there_is_no_reply() -> None:
    assembly = Assembly()
    assembly.add(chunk("Hello", (0, "a", "now", "{}")))

    assert failure_of(assembly.finish(Usage())).kind == "try_again"


def test_pieces_of_calls_that_take_turns() -> None:
    reply = whole(
        chunk(None, (0, "a", "now", ""), (1, "b", "later", "")),
        chunk(None, (1, None, None, '{"x":')),
        chunk(None, (0, None, None, "{}")),
        chunk(None, (1, None, None, "1}")),
    )

    assert reply.calls == (ToolCall("a", "now", "{}"), ToolCall("b", "later", '{"x":1}'))


@pytest.mark.parametrize("index", [0, None])
def test_a_vendor_that_does_not_count_its_calls(index: int | None) -> None:
    reply = whole(
        chunk(None, (index, "a", "now", "{")),
        chunk(None, (index, None, None, "}")),
        chunk(None, (index, "b", "now", '{"zone":"UTC"}')),
    )

    assert reply.calls == (ToolCall("a", "now", "{}"), ToolCall("b", "now", '{"zone":"UTC"}'))


def test_a_name_that_comes_with_every_piece() -> None:
    reply = whole(chunk(None, (0, "a", "now", "{")), chunk(None, (0, "a", "now", "}")))

    assert reply.calls == (ToolCall("a", "now", "{}"),)


def test_ids_that_are_missing_or_doubled_become_different_ones() -> None:
    reply = whole(chunk(None, (0, "a", "now", "{}"), (1, "a", "now", "{}"), (2, None, "now", "{}")))

    ids = [call.id for call in reply.calls]
    assert ids[0] == "a"
    assert len(set(ids)) == 3
    assert all(ids)


def test_the_output_limit_drops_the_call_that_it_cut() -> None:
    reply = whole(
        chunk("Two calls.", (0, "a", "now", "{}"), (1, "b", "now", '{"zone": "U')), finish="length"
    )

    assert (reply.text, reply.cut) == ("Two calls.", True)
    assert reply.calls == (ToolCall("a", "now", "{}"),)


def test_no_message_is_sent_without_a_visible_character() -> None:
    sent = messages_of(
        (
            SystemMessage(""),
            UserMessage(" \n"),
            AssistantMessage(" "),
            AssistantMessage("", (ToolCall("a", "now", "[]"), ToolCall("b", "now", "\ud800"))),
            ToolMessage("a", "now", ""),
        )
    )

    assert [message["content"] for message in sent] == [EMPTY, EMPTY, EMPTY, None, EMPTY]
    assert [call["function"]["arguments"] for call in sent[3]["tool_calls"]] == ["{}", "{}"]
