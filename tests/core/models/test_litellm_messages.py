"""The genuine litellm on Anthropic's wire, against a stand-in that is as strict as the API."""

import asyncio
import hashlib
from collections.abc import Callable

import msgspec
import pytest

from core.domain.messages import (
    AssistantMessage,
    Attachment,
    FailureKind,
    ModelRequest,
    Picture,
    ReadFile,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from core.models.litellm import LiteLLMModel
from core.models.litellm_load import load
from tests.core.domain.samples import calls
from tests.core.domain.world import World
from tests.core.files.made import picture
from tests.core.models.asking import TOOLS
from tests.core.models.bodies import CLAUDE, claude_body
from tests.core.models.harness import HELLO, NOW, Heard, Models, failure_of, reply_of
from tests.standins.anthropic import (
    BAD_KEY,
    DECLINED,
    MESSAGES,
    OVERLOADED,
    TOO_LONG,
    UNSAFE,
    AnthropicStandIn,
)
from tests.standins.anthropic_reply import Reply
from tests.standins.faults import Refuse, Reset, too_many
from tests.standins.openai_reply import ToolCall as Call
from tests.standins.openai_reply import Usage

CAT = picture()
SHA = hashlib.sha256(CAT).hexdigest()


@pytest.fixture
def claude(anthropic: AnthropicStandIn, model: Models) -> LiteLLMModel:
    return model(f"anthropic/{CLAUDE}", api_base=anthropic.url)


async def test_text_grows_and_the_whole_reply_comes_with_its_bill(
    anthropic: AnthropicStandIn, claude: LiteLLMModel, heard: Heard
) -> None:
    anthropic.script(Reply(text="Hello, nice to meet you.", usage=Usage(1000, 100)))

    reply = reply_of(await claude.complete(HELLO, heard.on_text))

    assert (reply.text, reply.calls, reply.cut) == ("Hello, nice to meet you.", (), False)
    assert heard.texts == ["Hello, nice ", "Hello, nice to meet you."]
    assert (reply.usage.prompt, reply.usage.completion) == (1000, 100)
    assert reply.usage.cost == pytest.approx(0.0045)
    assert reply.model == CLAUDE


async def test_calls_go_round(
    anthropic: AnthropicStandIn, claude: LiteLLMModel, heard: Heard
) -> None:
    wanted = (Call("now", {"zone": "Europe/Berlin"}), Call("now"))
    anthropic.script(Reply(text="Let me look.", tool_calls=wanted), Reply(text="It is noon."))
    asked = reply_of(await claude.complete(HELLO, heard.on_text))
    first, second = asked.calls
    told = (
        *HELLO.messages,
        AssistantMessage(asked.text, asked.calls),
        ToolMessage(first.id, "now", "noon"),
        ToolMessage(second.id, "now", " "),
    )

    reply = reply_of(await claude.complete(ModelRequest(told, (NOW,)), heard.on_text))

    assert [call.arguments for call in asked.calls] == ['{"zone": "Europe/Berlin"}', "{}"]
    assert reply.text == "It is noon."
    _, said, results = anthropic.requests[-1]["messages"]
    assert [block["type"] for block in said["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["tool_use_id"] for block in results["content"]] == [first.id, second.id]


async def test_a_picture_goes_along(
    anthropic: AnthropicStandIn, claude: LiteLLMModel, heard: Heard
) -> None:
    shown = UserMessage("look", (Picture(SHA, "image/jpeg", "photo, cat.jpg"),))
    request = ModelRequest((SystemMessage("Be kind."), shown), files={SHA: CAT})

    reply_of(await claude.complete(request, heard.on_text))

    (message,) = anthropic.requests[0]["messages"]
    assert [block["type"] for block in message["content"]] == ["text", "image"]


async def test_a_reply_that_was_cut_is_known_to_be(
    anthropic: AnthropicStandIn, claude: LiteLLMModel, heard: Heard
) -> None:
    anthropic.script(Reply(text="I can", finish_reason="max_tokens"))

    assert reply_of(await claude.complete(HELLO, heard.on_text)).cut


@pytest.mark.parametrize("trouble", [too_many(7), OVERLOADED, Refuse(500, "Internal"), Reset()])
async def test_what_may_pass_is_tried_again(
    anthropic: AnthropicStandIn,
    claude: LiteLLMModel,
    heard: Heard,
    trouble: Refuse | Reset,
) -> None:
    anthropic.faults.next(MESSAGES, trouble, trouble)

    assert reply_of(await claude.complete(HELLO, heard.on_text)).text == "You said: hello"
    assert len(heard.pauses) == 2


async def test_overload_within_the_stream_is_tried_again(
    anthropic: AnthropicStandIn, claude: LiteLLMModel, heard: Heard
) -> None:
    anthropic.script(Reply(text="Hello, nice to meet you.", overloaded_after=4))

    assert reply_of(await claude.complete(HELLO, heard.on_text)).text == "You said: hello"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (BAD_KEY, "never"),
        (TOO_LONG, "too_long"),
        (UNSAFE, "refused"),
        (DECLINED, "refused"),
    ],
)
async def test_what_will_not_pass_is_not_tried_again(
    anthropic: AnthropicStandIn,
    claude: LiteLLMModel,
    heard: Heard,
    answer: Refuse | Reply,
    kind: FailureKind,
) -> None:
    anthropic.script(answer)

    assert failure_of(await claude.complete(HELLO, heard.on_text)).kind == kind
    assert len(anthropic.calls) == 1


def killed_in_a_tool() -> World:
    world = World()
    world.says("pay it")
    world.replies("", *calls("look", "pay"))
    world.starts("c1")
    world.starts("c2")
    world.comes_back()
    world.runs("c1")
    return world


def killed_in_thought() -> World:
    world = World()
    world.says("hello")
    world.comes_back()
    world.says("are you there?")
    return world


def stopped_and_asked_again() -> World:
    world = World()
    world.says("pay it")
    world.replies("", *calls("pay"))
    world.command("stop")
    world.says("and now?")
    return world


def taken_back() -> World:
    world = World()
    world.says("hello")
    world.replies("Hi.")
    world.command("retry")
    return world


def two_vendors() -> World:
    world = World()
    world.says("look")
    world.replies("", ToolCall("functions.look:0", "functions.look", "[]"))
    world.runs("functions.look:0", "\n")
    return world


def shown_and_forgotten() -> World:
    world = World()
    world.says("", attachments=(Attachment(kind="photo", ref="r"),))
    world.reads(ReadFile(kind="picture", label="photo", sha=SHA, mime="image/jpeg"))
    world.fails("refused")
    world.says("never mind")
    return world


@pytest.mark.parametrize(
    "story",
    [
        killed_in_a_tool,
        killed_in_thought,
        stopped_and_asked_again,
        taken_back,
        two_vendors,
        shown_and_forgotten,
    ],
)
async def test_a_history_arrives_as_the_bodies_say(
    anthropic: AnthropicStandIn, claude: LiteLLMModel, heard: Heard, story: Callable[[], World]
) -> None:
    litellm = await asyncio.to_thread(load)
    request = msgspec.structs.replace(story().request(), tools=TOOLS)

    reply_of(await claude.complete(request, heard.on_text))

    assert anthropic.requests == [claude_body(litellm, request)]
