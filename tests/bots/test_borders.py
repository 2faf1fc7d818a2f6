"""What comes from outside cannot spoil a conversation, on either database: not now, and not after
the next start."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from core.domain.keys import Address
from core.domain.messages import (
    Attachment,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from core.ports import ToolContext, ToolOutput
from core.tools.remind_me import TOOL as REMIND_ME
from storage.store import SqlStore
from tests.bots.life import House
from tests.core.runtime.house import FakeTool

BAD = "a\0b\ud83dc\ude00\ud83d"
"""NUL, and an emoji's halves, alone and in the wrong order."""
FINE = "fine again"


class ChattyTool(FakeTool):
    """Shows its progress in words that nothing can store."""

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        context.progress(BAD)
        return await super().run(arguments, context)


@asynccontextmanager
async def home(url: str, *lines: Any, **tools: FakeTool) -> AsyncGenerator[House]:
    house = House(*lines, FINE, tools={**tools, "remind_me": REMIND_ME})
    house.store = store = await SqlStore.open(url)
    try:
        yield house
    finally:
        await store.close()


async def is_fine(house: House, **changes: Any) -> None:
    """In a new life the next message is answered, in the same conversation."""
    async with house.lives():
        await house.room.hears("and now?", **changes)
        await house.room.sees(FINE)
    assert [text for text in house.room.said if "could not be read" in text] == []
    assert "".join(house.room.said).encode()
    assert "\0" not in "".join(house.room.said)


async def hears_and_sees(house: House, text: str, wanted: str, **changes: Any) -> None:
    async with house.lives():
        await house.room.hears(text, **changes)
        await house.room.sees(wanted)


OF_A_PLATFORM: dict[str, dict[str, Any]] = {
    "a name": {"user_name": BAD},
    "a message's id": {"message_id": BAD},
    "an update's id": {"update_id": BAD},
    "a person": {"user": BAD},
    "a place": {"address": Address(platform="room", account=BAD, chat=BAD, thread=BAD)},
    "a file": {"attachments": (Attachment(kind=BAD, ref=BAD, name=BAD, mime=BAD),)},
}


@pytest.mark.parametrize("changes", OF_A_PLATFORM.values(), ids=OF_A_PLATFORM.keys())
async def test_whatever_a_platform_tells(database_url: str, changes: dict[str, Any]) -> None:
    async with home(database_url, "one") as house:
        await hears_and_sees(house, BAD, "one", **changes)
        await is_fine(house, **{n: v for n, v in changes.items() if n in ("user", "address")})
    assert len(house.script.requests[-1].messages) == 4


@pytest.mark.parametrize("name", ["start", "allow", "deny", "resume", "status", "nonsense"])
async def test_whatever_follows_a_command(database_url: str, name: str) -> None:
    async with home(database_url) as house:
        async with house.lives():
            await house.room.hears(f"/{name} {BAD}", trusted=True)
            await house.room.sees("")
        await is_fine(house)


OF_A_MODEL: dict[str, ModelReply | ModelFailure] = {
    "text": ModelReply(text=BAD + "one", model=BAD),
    "a bill": ModelReply(text="one", usage=Usage(-7, -1, float("nan"))),
    "a refusal": ModelFailure(kind="never", detail=BAD + "one"),
}


@pytest.mark.parametrize("reply", OF_A_MODEL.values(), ids=OF_A_MODEL.keys())
async def test_whatever_a_model_says(database_url: str, reply: ModelReply | ModelFailure) -> None:
    async with home(database_url, reply) as house:
        await hears_and_sees(house, "hello", "")
        await is_fine(house)


CALLS = {
    "of a bad name": (BAD, "{}"),
    "of no name": ("", "{}"),
    "of a dotted name": ("files.read", "{}"),
    "of a long name": ("l" * 300, "{}"),
    "without arguments": ("look", ""),
    "with bad arguments": ("look", f'{{"a": "{BAD}"}}'),
    "with half an object": ("look", '{"a": '),
    "with half an emoji": ("look", '{"a": "\\ud83d"}'),
    "with an escaped NUL": ("look", '{"a": "\\u0000"}'),
    "with no bottom": ("look", "[" * 5_000),
}


@pytest.mark.parametrize(("name", "arguments"), CALLS.values(), ids=CALLS.keys())
async def test_whatever_a_model_calls(database_url: str, name: str, arguments: str) -> None:
    call = ModelReply(text="", calls=(ToolCall(BAD, name, arguments),))
    async with home(database_url, call, "one", look=FakeTool("look", "read_only")) as house:
        await hears_and_sees(house, "hello", "one")
        await is_fine(house)
    assert results(house.script.requests[-1]) == 1


RESULTS: dict[str, Any] = {
    "text": BAD,
    "names and values": {BAD: [BAD, {BAD: BAD.encode("utf-16", "surrogatepass")}]},
    "an error": ValueError(BAD),
    "a long text": BAD * 50_000,
    "nothing": None,
    "no number": float("nan"),
    "no json": object(),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
async def test_whatever_a_tool_returns(database_url: str, result: Any) -> None:
    tool = ChattyTool("look", "read_only")
    tool.result = result
    call = ModelReply(text="", calls=(ToolCall("c1", "look", "{}"),))
    async with home(database_url, call, "one", look=tool) as house:
        await hears_and_sees(house, "hello", "one")
        await is_fine(house)
    assert results(house.script.requests[-1]) == 1


async def test_whatever_a_reminder_says(database_url: str) -> None:
    wish = '{"text": "tea \\u0000 now", "seconds": 60}'
    call = ModelReply(text="", calls=(ToolCall("c1", "remind_me", wish),))
    async with home(database_url, call, "one", "tea!") as house:
        async with house.lives():
            await house.room.hears("remind me of tea")
            await house.room.sees("one")
            house.clock.passes(minutes=2)
            await house.room.sees("tea!")
        await is_fine(house)


async def test_what_the_provider_refused_is_never_sent_again(database_url: str) -> None:
    refused = ModelFailure(kind="refused", detail="400")
    async with home(database_url, "one", refused, refused) as house:
        async with house.lives():
            await house.room.hears("a good start")
            await house.room.sees("one")
            await house.room.hears("a forbidden word")
            await house.room.sees("refused this request")
            await house.room.hears("another word")
            await house.room.sees(FINE)
        assert await house.outcomes() == {"answered": 2, "failed": 1}
    later = [users(request) for request in house.script.requests[2:]]
    assert later == [["a forbidden word"], ["a good start", "another word"]]


async def test_a_conversation_that_is_refused_as_a_whole_has_an_end(database_url: str) -> None:
    def stubborn(request: ModelRequest) -> ModelFailure | str:
        alone = len(request.messages) == 2
        return "as new" if alone else ModelFailure(kind="refused", detail="400")

    async with home(database_url, *[stubborn] * 9) as house:
        async with house.lives():
            await house.room.hears("one")
            await house.room.sees("as new")
            await house.room.hears("two")
            await house.room.sees("answered it alone")
            await house.room.hears("three")
            await house.room.sees("out of my view")
        assert await house.outcomes() == {"answered": 3}
    assert len(house.script.requests) == 5


def users(request: ModelRequest) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


def results(request: ModelRequest) -> int:
    return sum(isinstance(message, ToolMessage) for message in request.messages)
