import re
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

from core.domain.messages import (
    AssistantMessage,
    ChatMessage,
    ModelRequest,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from core.models.litellm_ids import with_legal_ids
from tests.core.models.harness import KEY, NOW, Heard, Models, reply_of
from tests.standins.openai import OpenAIStandIn

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,40}")
THOUGHT = "call_1__thought__CiQB/+abc=="

ids = st.one_of(
    st.sampled_from(["now:0", "now_0", "now.0", "", "é", "x" * 40, "x" * 41, "x" * 42, "\ud800"]),
    st.text(st.sampled_from("ab_:|"), max_size=3),
)


def conversation(*call_ids: str) -> tuple[ChatMessage, ...]:
    said: list[ChatMessage] = [UserMessage("what time is it")]
    for call_id in call_ids:
        said += [
            AssistantMessage("", (ToolCall(call_id, "now", "{}"),)),
            ToolMessage(call_id, "now", "noon"),
        ]
    return tuple(said)


def sent(*call_ids: str, signed: bool = False) -> list[tuple[str, str]]:
    """The id of each call and that of its result."""
    _, *said = with_legal_ids(conversation(*call_ids), signed=signed)
    pairs = zip(said[::2], said[1::2], strict=True)
    return [(call.calls[0].id, result.call_id) for call, result in pairs]  # type: ignore[union-attr]


@given(st.lists(ids, unique=True, max_size=8))
def test_every_id_is_legal_its_calls_alone_and_its_results_too(call_ids: list[str]) -> None:
    pairs = sent(*call_ids)

    assert all(LEGAL.fullmatch(call) for call, _ in pairs)
    assert all(call == result for call, result in pairs)
    assert len(set(pairs)) == len(call_ids)


@given(st.lists(ids, unique=True, max_size=8), st.integers(0, 8))
def test_what_follows_changes_no_id(call_ids: list[str], many: int) -> None:
    assert sent(*call_ids[:many]) == sent(*call_ids)[:many]


def test_what_is_legal_stays_as_it_is() -> None:
    assert sent("call_1", "toolu_01-A") == [("call_1", "call_1"), ("toolu_01-A", "toolu_01-A")]


def test_only_gemini_gets_its_thoughts_back() -> None:
    assert sent(THOUGHT, signed=True) == [(THOUGHT, THOUGHT)]
    assert sent(THOUGHT, signed=False) == [("call_1", "call_1")]


def test_an_id_that_another_was_made_to_is_told_from_it() -> None:
    made = sent("now:0")[0][0]

    first, second = sent("now:0", made)

    assert first[0] == made
    assert LEGAL.fullmatch(second[0])
    assert second[0] != made


async def test_a_thought_reaches_gemini_and_nobody_else(
    ai: OpenAIStandIn, model: Models, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the genuine litellm: the fallback of a vendor's model is of another vendor."""
    sent: list[Any] = []
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    gemini = model("gemini/gemini-3-pro-preview", fallbacks=("openai/second",), attempts=1)
    await gemini.load()

    async def post(self: object, url: str, **more: Any) -> None:
        sent.append(more)
        raise httpx.ConnectError(url)

    monkeypatch.setattr(AsyncHTTPHandler, "post", post)
    request = ModelRequest((*conversation(THOUGHT), UserMessage("and now?")), (NOW,))

    reply_of(await gemini.complete(request, heard.on_text))

    ((called,), (result,)) = ai_calls(ai)
    assert called == result == "call_1"
    assert "CiQB/+abc==" in str(sent)


def ai_calls(ai: OpenAIStandIn) -> tuple[list[str], list[str]]:
    messages = ai.requests[0]["messages"]
    called = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    return called, [m["tool_call_id"] for m in messages if m["role"] == "tool"]
