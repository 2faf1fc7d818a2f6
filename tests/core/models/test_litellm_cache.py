"""What is marked to be kept, as Anthropic's API gets it from the genuine litellm."""

import json
from types import ModuleType
from typing import Any

import pytest

from core.domain.messages import (
    AssistantMessage,
    ChatMessage,
    ModelRequest,
    Picture,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from core.models.litellm_cache import wants_marks
from core.models.litellm_load import load
from tests.core.files.made import picture
from tests.core.models.bodies import claude_body
from tests.core.models.harness import HELLO, NOW, Heard, Models, reply_of
from tests.standins.anthropic import AnthropicStandIn
from tests.standins.openai import OpenAIStandIn

CALL = AssistantMessage("", (ToolCall("a", "now", "{}"), ToolCall("b", "now", "{}")))
SHOWN = Picture("1" * 64, "image/jpeg", "photo")
HEAD = ["now", "Be kind."]


@pytest.fixture(scope="module")
def litellm() -> ModuleType:
    return load()


def asked(*messages: ChatMessage) -> ModelRequest:
    files = {SHOWN.sha: picture()}
    return ModelRequest((SystemMessage("Be kind."), *messages), (NOW,), files)


def marked(body: Any) -> list[str]:
    """What ends where something is kept, in the order of the prompt."""
    blocks = [*body.get("tools", []), *body["system"]]
    for message in body["messages"]:
        blocks += message["content"]
    kept = [block for block in blocks if block.get("cache_control") == {"type": "ephemeral"}]
    told = [{**block, "cache_control": None} for block in kept]
    assert json.dumps(body).count("cache_control") == len(told)
    keys = ("name", "text", "tool_use_id", "type")
    return [str(next(block[key] for key in keys if key in block)) for block in told]


@pytest.mark.parametrize(
    ("messages", "kept"),
    [
        ([UserMessage("one")], []),
        ([UserMessage("one"), AssistantMessage("1"), UserMessage("two")], ["one", "two"]),
        ([UserMessage("one"), AssistantMessage("1"), UserMessage("", (SHOWN,))], ["one", "image"]),
        (
            [UserMessage("one"), CALL, ToolMessage("a", "now", "1"), ToolMessage("b", "now", "2")],
            ["one", "b"],
        ),
        (
            [
                *(
                    UserMessage("one"),
                    CALL,
                    ToolMessage("a", "now", ""),
                    ToolMessage("b", "now", ""),
                ),
                *(AssistantMessage("x"), UserMessage("two"), AssistantMessage("y")),
                UserMessage("three"),
            ],
            ["two", "three"],
        ),
    ],
    ids=["a first message", "a second", "a picture", "results", "a longer one"],
)
def test_the_head_and_the_last_two_turns_are_kept(
    litellm: ModuleType, messages: list[ChatMessage], kept: list[str]
) -> None:
    assert marked(claude_body(litellm, asked(*messages))) == HEAD + kept


@pytest.mark.parametrize(
    ("name", "vendor", "wanted"),
    [
        ("anthropic/claude-sonnet-5", "anthropic", True),
        ("bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock", True),
        ("bedrock/amazon.nova-pro-v1:0", "bedrock", False),
        ("vertex_ai/claude-sonnet-4-5", "vertex_ai", True),
        ("vertex_ai/gemini-3-pro", "vertex_ai", False),
        ("openrouter/anthropic/claude-sonnet-4.5", "openrouter", True),
        ("openrouter/openai/gpt-5", "openrouter", False),
        ("openai/gpt-5.4-mini", "openai", False),
        ("openai/claude-behind-a-gateway", "openai", False),
        ("gemini/gemini-flash-latest", "gemini", False),
    ],
)
def test_only_models_of_anthropic_are_told(name: str, vendor: str, *, wanted: bool) -> None:
    assert wants_marks(name, vendor) is wanted


LONG = "All the world's a stage, and all the men and women merely players. " * 150
FIRST = (SystemMessage(LONG), UserMessage("hello"))
SECOND = (*FIRST, AssistantMessage("You said: hello"), UserMessage("and now?"))


async def test_what_openai_kept_is_counted_and_costs_less(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    gpt = model("openai/gpt-4o")

    first = reply_of(await gpt.complete(ModelRequest(FIRST), heard.on_text)).usage
    second = reply_of(await gpt.complete(ModelRequest(SECOND), heard.on_text)).usage

    assert "cache_control" not in json.dumps(ai.requests)
    assert first.cached == 0
    assert second.prompt > second.cached > 2000
    plain = (second.prompt - second.cached) * 2.5e-6 + second.completion * 10e-6
    assert second.cost == pytest.approx(plain + second.cached * 1.25e-6)


async def test_what_anthropic_kept_is_counted_and_costs_less(
    anthropic: AnthropicStandIn, model: Models, heard: Heard
) -> None:
    claude = model("anthropic/claude-sonnet-4-5", api_base=anthropic.url)

    first = reply_of(await claude.complete(ModelRequest(FIRST), heard.on_text)).usage
    second = reply_of(await claude.complete(ModelRequest(SECOND), heard.on_text)).usage

    assert first.cached == 0
    assert first.cost > first.prompt * 3e-6
    assert second.prompt > second.cached > 2000
    assert second.cost < second.prompt * 0.5e-6 + second.completion * 15e-6


async def test_a_call_to_anthropic_carries_the_marks(
    anthropic: AnthropicStandIn, model: Models, heard: Heard
) -> None:
    await model("anthropic/claude-sonnet-4-5", api_base=anthropic.url).complete(
        HELLO, heard.on_text
    )

    assert marked(anthropic.requests[0]) == HEAD
