"""The genuine litellm against the model stand-in: streams, tools, errors and hang-ups."""

# pyright: reportUnknownMemberType=false

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import aiohttp
import litellm
import pytest
from litellm import exceptions
from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

from tests.standins.faults import BAD_GATEWAY, Fault, StoreThenCut, too_many
from tests.standins.openai import (
    BAD_KEY,
    COMPLETIONS,
    FILTERED,
    TOO_LONG,
    UNSAFE,
    OpenAIStandIn,
)
from tests.standins.openai_checks import Json
from tests.standins.openai_reply import Reply, ToolCall, Usage

# Both are litellm's own: at its first call, and at each streamed chunk.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Items .* ReadOnly:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_computed_fields' attribute"),
]

USER: Json = {"role": "user", "content": "what time is it?"}
TOOLS = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}]


@pytest.fixture(autouse=True)
async def tidy_litellm(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """It keeps open connections by event loop, and each test has its own."""
    monkeypatch.setattr(litellm, "suppress_debug_info", True)
    yield
    await close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()


@pytest.fixture
async def ai() -> AsyncIterator[OpenAIStandIn]:
    async with OpenAIStandIn() as ai:
        yield ai


async def ask(ai: OpenAIStandIn, *messages: Json, **more: Any) -> Any:
    answer = await litellm.acompletion(
        model="openai/test",
        messages=list(messages) or [USER],
        api_base=f"{ai.url}/v1",
        api_key="x",
        num_retries=0,
        max_retries=0,
        **more,
    )
    return cast(Any, answer)


async def stream(ai: OpenAIStandIn, *messages: Json, **more: Any) -> list[Any]:
    options = {"include_usage": True}
    answer = await ask(ai, *messages, stream=True, stream_options=options, **more)
    return [chunk async for chunk in answer]


def whole(chunks: list[Any]) -> Any:
    return cast(Any, litellm.stream_chunk_builder(chunks))


async def ask_streaming(ai: OpenAIStandIn, *messages: Json, **more: Any) -> Any:
    return whole(await stream(ai, *messages, **more))


async def test_without_a_script_it_echoes(ai: OpenAIStandIn) -> None:
    answer = await ask(ai)
    assert answer.choices[0].message.content == "You said: what time is it?"
    assert answer.usage.total_tokens > 0
    assert [request["messages"] for request in ai.requests] == [[USER]]


async def test_a_reply_can_depend_on_the_request(ai: OpenAIStandIn) -> None:
    ai.respond = lambda request: Reply(text=f"{len(request['messages'])} messages")
    ai.script(Reply(text="scripted first"))
    assert (await ask(ai)).choices[0].message.content == "scripted first"
    assert (await ask(ai, USER, USER)).choices[0].message.content == "2 messages"


async def test_a_text_is_streamed_in_pieces_with_usage(ai: OpenAIStandIn) -> None:
    text = "It is noon, and the 👋 sun is high."
    ai.script(Reply(text=text, usage=Usage(11, 5)))
    chunks = await stream(ai)
    choices = [choice for chunk in chunks for choice in chunk.choices]
    pieces = [choice.delta.content for choice in choices if choice.delta.content]
    assert ("".join(pieces), len(pieces)) == (text, 3)
    answer = whole(chunks)
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (11, 5, 16)
    assert answer.choices[0].finish_reason == "stop"


@pytest.mark.parametrize("asking", [ask, ask_streaming], ids=["whole", "stream"])
async def test_parallel_tool_calls_and_their_results(
    ai: OpenAIStandIn, asking: Callable[..., Awaitable[Any]]
) -> None:
    calls = (ToolCall("now", {"zone": "Europe/Vienna"}), ToolCall("now", {"zone": "Asia/Tokyo"}))
    ai.script(Reply(tool_calls=calls), Reply(text="noon and evening"))
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


async def test_an_illegal_request_is_refused_and_noted(ai: OpenAIStandIn) -> None:
    orphan = {"role": "tool", "tool_call_id": "a", "content": "12"}
    with pytest.raises(exceptions.BadRequestError, match="must be a response"):
        await ask(ai, USER, orphan)
    assert len(ai.violations) == 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (BAD_KEY, exceptions.AuthenticationError),
        (too_many(7), exceptions.RateLimitError),
        (TOO_LONG, exceptions.ContextWindowExceededError),
        (UNSAFE, exceptions.BadRequestError),
        (BAD_GATEWAY, exceptions.BadGatewayError),
        (StoreThenCut(), exceptions.InternalServerError),
    ],
    ids=["401", "429", "too long", "unsafe", "502", "cut"],
)
async def test_each_fault_is_the_error_that_litellm_knows(
    ai: OpenAIStandIn, fault: Fault, error: type[Exception]
) -> None:
    ai.faults.next(COMPLETIONS, fault)
    with pytest.raises(error):
        await ask(ai)
    assert len(ai.calls) == 1


async def test_a_rate_limit_says_for_how_long(ai: OpenAIStandIn) -> None:
    ai.script(too_many(7))
    with pytest.raises(exceptions.RateLimitError) as caught:
        await ask(ai)
    assert cast(Any, caught.value).litellm_response_headers["retry-after"] == "7"


async def test_a_filtered_reply_says_so(ai: OpenAIStandIn) -> None:
    ai.script(FILTERED)
    assert (await ask(ai)).choices[0].finish_reason == "content_filter"


@pytest.mark.parametrize(
    "reply",
    [Reply(text="x" * 99, cut_after=3), Reply(text="x" * 99, garbage_after=3)],
    ids=["cut", "garbage"],
)
async def test_a_stream_that_breaks_raises(ai: OpenAIStandIn, reply: Reply) -> None:
    ai.script(reply)
    with pytest.raises(exceptions.MidStreamFallbackError):
        await stream(ai)
    assert ai.calls[0].pieces == 3


async def test_a_hanging_stream_knows_that_its_client_left(ai: OpenAIStandIn) -> None:
    ai.script(Reply(text="x" * 99, hang_after=4))
    hanging = asyncio.create_task(stream(ai))
    await ai.wait_for(lambda: ai.calls and ai.calls[0].pieces == 4)
    hanging.cancel()
    await ai.wait_for(lambda: ai.cancelled)
    assert ai.calls[0].pieces == 4


async def test_a_slow_stream_ends_when_its_client_left(ai: OpenAIStandIn) -> None:
    ai.script(Reply(text="x" * 999, delay_per_chunk=0.01))
    slow = asyncio.create_task(stream(ai))
    await ai.wait_for(lambda: ai.calls and ai.calls[0].pieces >= 2)
    slow.cancel()
    await ai.wait_for(lambda: ai.cancelled and ai.calls[0].outcome == "client left")


async def test_a_held_call_waits_and_takes_no_reply_when_given_up(ai: OpenAIStandIn) -> None:
    ai.script(Reply(text="for the second"))
    ai.hold()
    given_up = asyncio.create_task(ask(ai))
    await ai.wait_for(lambda: len(ai.requests) == 1)
    given_up.cancel()
    await ai.wait_for(lambda: ai.cancelled)
    waiting = asyncio.create_task(ask(ai))
    await ai.wait_for(lambda: len(ai.requests) == 2)
    assert not waiting.done()
    ai.release()
    assert (await waiting).choices[0].message.content == "for the second"


async def test_a_request_beyond_the_window_is_refused() -> None:
    async with OpenAIStandIn(window=1000) as ai:
        with pytest.raises(exceptions.ContextWindowExceededError):
            await ask(ai, USER | {"content": "long " * 1000})
        assert (await ask(ai)).choices[0].message.content
        assert ai.violations == []
        (tokens,) = ai.too_long
        assert 1000 < tokens < 1100


async def test_what_was_seen_before_is_kept(ai: OpenAIStandIn) -> None:
    long: Json = {"role": "system", "content": "long " * 2000}
    other: Json = {"role": "system", "content": "tall " * 2000}

    asked = ([long, USER], [long, USER, USER], [other, USER])

    usages = [(await ask(ai, *said)).usage for said in asked]

    cached = [usage.prompt_tokens_details.cached_tokens for usage in usages]
    assert cached == [0, usages[0].prompt_tokens, 0]
    assert cached[1] > 2000


async def test_the_key_is_looked_at_when_one_is_set(ai: OpenAIStandIn) -> None:
    ai.api_key = "another"
    with pytest.raises(exceptions.AuthenticationError):
        await ask(ai)
    assert ai.requests == []


async def test_the_models_are_listed(ai: OpenAIStandIn) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{ai.url}/v1/models") as response:
        assert [model["id"] for model in (await response.json())["data"]] == ["test"]
