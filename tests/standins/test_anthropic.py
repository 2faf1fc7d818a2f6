"""The genuine litellm against Anthropic's stand-in: streams, tools, errors and hang-ups."""

# pyright: reportUnknownMemberType=false

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import aiohttp
import litellm
import pytest
from litellm import exceptions
from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

from tests.standins.anthropic import (
    BAD_KEY,
    DECLINED,
    LARGEST_BODY,
    MESSAGES,
    NO_CREDIT,
    OVERLOADED,
    TOO_LARGE,
    TOO_LONG,
    UNSAFE,
    AnthropicStandIn,
)
from tests.standins.anthropic_reply import Reply
from tests.standins.faults import BAD_GATEWAY, Fault, StoreThenCut, too_many
from tests.standins.model import Json
from tests.standins.openai_reply import ToolCall, Usage

# Both are litellm's own: at its first call, and at each streamed chunk.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Items .* ReadOnly:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_computed_fields' attribute"),
]

MODEL = "claude-sonnet-4-5"
USER: Json = {"role": "user", "content": "what time is it?"}
TOOLS = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}]
HEADERS = {"x-api-key": "x", "anthropic-version": "2023-06-01"}
HELLO: Json = {"model": MODEL, "max_tokens": 9, "messages": [USER]}


@pytest.fixture(autouse=True)
async def tidy_litellm(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """It keeps open connections by event loop, and each test has its own; it mends nothing here."""
    monkeypatch.setattr(litellm, "suppress_debug_info", True)
    monkeypatch.setattr(litellm, "modify_params", False)
    yield
    await close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()


@pytest.fixture
async def ai() -> AsyncIterator[AnthropicStandIn]:
    async with AnthropicStandIn() as ai:
        yield ai


async def ask(ai: AnthropicStandIn, *messages: Json, **more: Any) -> Any:
    answer = await litellm.acompletion(
        model=f"anthropic/{MODEL}",
        messages=list(messages) or [USER],
        api_base=ai.url,
        api_key="x",
        num_retries=0,
        max_retries=0,
        **more,
    )
    return cast(Any, answer)


async def stream(ai: AnthropicStandIn, *messages: Json, **more: Any) -> list[Any]:
    options = {"include_usage": True}
    answer = await ask(ai, *messages, stream=True, stream_options=options, **more)
    return [chunk async for chunk in answer]


def whole(chunks: list[Any]) -> Any:
    return cast(Any, litellm.stream_chunk_builder(chunks))


async def ask_streaming(ai: AnthropicStandIn, *messages: Json, **more: Any) -> Any:
    return whole(await stream(ai, *messages, **more))


async def post(ai: AnthropicStandIn, headers: Json, **more: Any) -> tuple[int, Json, list[str]]:
    """Status, error and lines, as one without an SDK would read them."""
    body = io.BytesIO(json.dumps(HELLO | more).encode())
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{ai.url}/v1/messages", data=body, headers=headers) as answer,
    ):
        lines = (await answer.text()).splitlines()
        error: Json = json.loads(lines[0])["error"] if answer.status >= 400 else {}
        return answer.status, error, lines


asking = pytest.mark.parametrize("asking", [ask, ask_streaming], ids=["whole", "stream"])
Asking = Callable[..., Awaitable[Any]]


@asking
async def test_without_a_script_it_echoes(ai: AnthropicStandIn, asking: Asking) -> None:
    answer = await asking(ai, {"role": "system", "content": "Be kind."}, USER)
    assert answer.choices[0].message.content == "You said: what time is it?"
    assert answer.usage.total_tokens > 0
    assert [request["system"][0]["text"] for request in ai.requests] == ["Be kind."]


async def test_a_text_is_streamed_in_pieces_with_usage(ai: AnthropicStandIn) -> None:
    text = "It is noon, and the 👋 sun is high."
    ai.script(Reply(text=text, usage=Usage(11, 5)))
    chunks = await stream(ai)
    choices = [choice for chunk in chunks for choice in chunk.choices]
    pieces = [choice.delta.content for choice in choices if choice.delta.content]
    assert ("".join(pieces), len(pieces)) == (text, 3)
    answer = whole(chunks)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (11, 5)
    assert answer.choices[0].finish_reason == "stop"


async def test_the_events_are_anthropics_own(ai: AnthropicStandIn) -> None:
    ai.script(Reply(text="Let me look.", tool_calls=(ToolCall("now", {"zone": "UTC"}),)))
    _, _, lines = await post(ai, HEADERS, stream=True)
    assert [line[7:] for line in lines if line.startswith("event: ")] == [
        *("message_start", "ping"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_delta"),
        *("content_block_stop", "message_delta", "message_stop"),
    ]
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert [event.get("index") for event in events[2:9]] == [0, 0, 0, 1, 1, 1, 1]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


@asking
async def test_parallel_tool_calls_and_their_results(ai: AnthropicStandIn, asking: Asking) -> None:
    calls = (ToolCall("now", {"zone": "Europe/Vienna"}), ToolCall("now", {"zone": "Asia/Tokyo"}))
    ai.script(Reply(text="Let me look.", tool_calls=calls), Reply(text="noon and evening"))
    message = (await asking(ai, tools=TOOLS)).choices[0].message
    assert [json.loads(c.function.arguments) for c in message.tool_calls] == [
        call.arguments for call in calls
    ]
    ids = [call.id for call in message.tool_calls]
    assert len(set(ids)) == 2
    results = [{"role": "tool", "tool_call_id": call_id, "content": "12"} for call_id in ids]
    answer = await ask(ai, USER, message.model_dump(), *results, tools=TOOLS)
    assert answer.choices[0].message.content == "noon and evening"
    assert ai.violations == []


async def test_an_illegal_request_is_refused_and_noted(ai: AnthropicStandIn) -> None:
    orphan = {"role": "tool", "tool_call_id": "a", "content": "12"}
    with pytest.raises(exceptions.BadRequestError, match="in the previous message"):
        await ask(ai, USER, orphan, tools=TOOLS)
    assert len(ai.violations) == 1


async def test_a_request_beyond_the_window_is_refused() -> None:
    async with AnthropicStandIn(window=1000) as ai:
        with pytest.raises(exceptions.ContextWindowExceededError):
            await ask(ai, USER | {"content": "long " * 1000})
        assert (await ask(ai)).choices[0].message.content
        assert ai.violations == []
        (tokens,) = ai.too_long
        assert 1000 < tokens < 1100


async def test_what_was_marked_is_kept_for_whoever_begins_with_it(ai: AnthropicStandIn) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    system: Json = {
        "role": "system",
        "content": [{"type": "text", "text": "long " * 2000, **mark}],
    }
    other: Json = {"role": "system", "content": [{"type": "text", "text": "tall " * 2000, **mark}]}

    asked = ([system, USER], [system, USER | {"content": "and now?"}], [other, USER])

    usages = [(await ask(ai, *said)).usage for said in asked]

    read = [usage.cache_read_input_tokens for usage in usages]
    written = [usage.cache_creation_input_tokens for usage in usages]
    assert read == [0, written[0], 0]
    assert written[0] > 2000
    assert written[1] == 0
    assert written[2] > 2000


async def test_nothing_is_kept_without_a_mark(ai: AnthropicStandIn) -> None:
    long = USER | {"content": "long " * 2000}

    usages = [(await ask(ai, long)).usage for _ in range(2)]

    assert [usage.cache_read_input_tokens for usage in usages] == [0, 0]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (BAD_KEY, exceptions.AuthenticationError),
        (too_many(7), exceptions.RateLimitError),
        (TOO_LONG, exceptions.ContextWindowExceededError),
        (UNSAFE, exceptions.BadRequestError),
        (NO_CREDIT, exceptions.BadRequestError),
        (OVERLOADED, exceptions.InternalServerError),
        (BAD_GATEWAY, exceptions.BadGatewayError),
        (StoreThenCut(), exceptions.InternalServerError),
    ],
    ids=["401", "429", "too long", "unsafe", "no credit", "529", "502", "cut"],
)
async def test_each_fault_is_the_error_that_litellm_knows(
    ai: AnthropicStandIn, fault: Fault, error: type[Exception]
) -> None:
    ai.faults.next(MESSAGES, fault)
    with pytest.raises(error):
        await ask(ai)
    assert len(ai.calls) == 1


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (too_many(7), "rate_limit_error"),
        (OVERLOADED, "overloaded_error"),
        (TOO_LONG, "invalid_request_error"),
    ],
)
async def test_errors_have_anthropics_shape(ai: AnthropicStandIn, fault: Any, kind: str) -> None:
    ai.script(fault)
    status, error, _ = await post(ai, HEADERS)
    assert (status, error) == (fault.status, {"type": kind, "message": fault.text})


async def test_a_rate_limit_says_for_how_long(ai: AnthropicStandIn) -> None:
    ai.script(too_many(7))
    with pytest.raises(exceptions.RateLimitError) as caught:
        await ask(ai)
    assert cast(Any, caught.value).litellm_response_headers["retry-after"] == "7"


async def test_a_reply_that_was_declined_says_so(ai: AnthropicStandIn) -> None:
    ai.script(DECLINED)
    assert (await ask(ai)).choices[0].finish_reason == "content_filter"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="x" * 99, cut_after=5),
        Reply(text="x" * 99, garbage_after=5),
        Reply(text="x" * 99, overloaded_after=4),
    ],
    ids=["cut", "garbage", "overloaded"],
)
async def test_a_stream_that_breaks_raises(ai: AnthropicStandIn, reply: Reply) -> None:
    ai.script(reply)
    with pytest.raises(exceptions.MidStreamFallbackError):
        await stream(ai)
    assert ai.calls[0].pieces == 5


async def test_a_hanging_stream_knows_that_its_client_left(ai: AnthropicStandIn) -> None:
    ai.script(Reply(text="x" * 99, hang_after=4))
    hanging = asyncio.create_task(stream(ai))
    await ai.wait_for(lambda: ai.calls and ai.calls[0].pieces == 4)
    hanging.cancel()
    await ai.wait_for(lambda: ai.cancelled)
    assert ai.calls[0].pieces == 4


async def test_a_held_call_waits_until_it_is_let_go(ai: AnthropicStandIn) -> None:
    ai.hold()
    waiting = asyncio.create_task(ask(ai))
    await ai.wait_for(lambda: len(ai.requests) == 1)
    assert not waiting.done()
    ai.release()
    assert (await waiting).choices[0].message.content == "You said: what time is it?"


async def test_the_key_is_looked_at(ai: AnthropicStandIn) -> None:
    assert (await post(ai, HEADERS))[0] == 200
    assert (await post(ai, HEADERS | {"x-api-key": ""}))[:2] == (
        401,
        {"type": "authentication_error", "message": "invalid x-api-key"},
    )
    ai.api_key = "another"
    assert (await post(ai, HEADERS))[0] == 401
    assert len(ai.requests) == 1


async def test_the_version_is_needed(ai: AnthropicStandIn) -> None:
    status, error, _ = await post(ai, {"x-api-key": "x"})
    assert (status, error["message"]) == (400, "anthropic-version: header is required")


async def test_a_body_has_a_largest_size(ai: AnthropicStandIn) -> None:
    status, error, _ = await post(ai, HEADERS, system="x" * LARGEST_BODY)
    assert (status, error["type"]) == (413, "request_too_large")
    assert error["message"] == TOO_LARGE.text
