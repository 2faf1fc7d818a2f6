"""The same promises on another wire format, where litellm makes up an end for a stream without."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from core.domain.messages import ToolCall
from core.models.litellm import LiteLLMModel
from tests.core.models.harness import HELLO, KEY, Heard, Models, failure_of, reply_of

Event = dict[str, Any]

START: Event = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "claude-sonnet-4-5",
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1000, "output_tokens": 1},
    },
}
TEXT: list[Event] = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look."}},
    {"type": "content_block_stop", "index": 0},
]
TOOL: Event = {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}
CALL: list[Event] = [
    {"type": "content_block_start", "index": 1, "content_block": TOOL},
    *(
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": piece},
        }
        for piece in ('{"zone":', ' "UTC"}')
    ),
    {"type": "content_block_stop", "index": 1},
]
END: list[Event] = [
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 100},
    },
    {"type": "message_stop"},
]
OVERLOADED: Event = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded"},
}


class Claude:
    """Sends the next of ``streams``, or refuses with its status."""

    def __init__(self) -> None:
        self.streams: list[list[Event] | int] = []
        self.requests: list[Any] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        events = self.streams.pop(0)
        if isinstance(events, int):
            return web.json_response(OVERLOADED, status=events)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        return response


@pytest.fixture
def claude() -> Claude:
    return Claude()


@pytest.fixture
async def sonnet(
    claude: Claude, model: Models, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LiteLLMModel]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    app = web.Application()
    app.add_routes([web.post("/v1/messages", claude.answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield model("anthropic/claude-sonnet-4-5", api_base=base, attempts=2)
    await runner.cleanup()


async def test_text_call_and_bill(claude: Claude, sonnet: LiteLLMModel, heard: Heard) -> None:
    claude.streams = [[START, *TEXT, *CALL, *END]]

    reply = reply_of(await sonnet.complete(HELLO, heard.on_text))

    assert heard.texts == ["Let me ", "Let me look."]
    assert reply.calls == (ToolCall("toolu_1", "now", '{"zone": "UTC"}'),)
    assert (reply.usage.prompt, reply.usage.completion) == (1000, 100)
    assert reply.usage.cost == pytest.approx(0.0045)
    assert claude.requests[0]["system"][0]["text"] == "Be kind."


@pytest.mark.parametrize("events", [[START], [START, *TEXT], [START, *TEXT, *CALL[:2]]])
async def test_a_stream_that_just_ends_is_no_reply(
    claude: Claude, sonnet: LiteLLMModel, heard: Heard, events: list[Event]
) -> None:
    claude.streams = [events, events]

    assert failure_of(await sonnet.complete(HELLO, heard.on_text)).kind == "try_again"


@pytest.mark.parametrize("trouble", [529, 500, [START, *TEXT, OVERLOADED]])
async def test_overload_is_tried_again(
    claude: Claude, sonnet: LiteLLMModel, heard: Heard, trouble: list[Event] | int
) -> None:
    claude.streams = [trouble, [START, *TEXT, *END]]

    assert reply_of(await sonnet.complete(HELLO, heard.on_text)).text == "Let me look."
    assert len(heard.pauses) == 1
