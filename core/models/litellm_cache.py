"""Where a vendor is told to keep a prompt for the next request; it changes no word of it.

Source: platform.claude.com/docs/en/build-with-claude/prompt-caching
"""

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

MARK: Json = {"cache_control": {"type": "ephemeral"}}
TURNS = 2
"""Marks among the messages: the last is kept for the next request, the one before was kept for
this. With those of tools and system that makes four, the most that is taken."""
VENDORS = ("anthropic", "bedrock", "vertex_ai", "openrouter", "databricks", "azure_ai")


def wants_marks(name: str, vendor: str) -> bool:
    """Anthropic's models, wherever they are; other vendors keep what they like by themselves."""
    return vendor == "anthropic" or ("claude" in name.lower() and vendor.startswith(VENDORS))


def marked(messages: Sequence[Json], tools: Sequence[Json]) -> tuple[list[Json], list[Json]]:
    """A request without an answer in it is not marked but for its head: most such are not gone on
    with, and what is kept costs more once."""
    places = [number for number, message in enumerate(messages) if message["role"] == "system"]
    if any(message["role"] == "assistant" for message in messages):
        places += _turns(messages)[-TURNS:]
    shown = [_mark(m) if n in places else m for n, m in enumerate(messages)]
    return shown, [*tools[:-1], *({**tool, **MARK} for tool in tools[-1:])]


def _turns(messages: Sequence[Json]) -> list[int]:
    """The last message of each turn of the user's; results of tools are that to Anthropic."""
    followers: list[str] = [*(message["role"] for message in messages[1:]), "assistant"]
    return [
        number
        for number, (message, follower) in enumerate(zip(messages, followers, strict=True))
        if message["role"] in ("user", "tool") and follower == "assistant"
    ]


def _mark(message: Json) -> Json:
    content: str | list[Json] = message["content"]
    if message["role"] == "tool":
        return {**message, **MARK}
    if isinstance(content, str):
        return {**message, "content": [{"type": "text", "text": content, **MARK}]}
    return {**message, "content": [*content[:-1], {**content[-1], **MARK}]}
