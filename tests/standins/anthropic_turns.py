"""The turns of a Messages request, and whether calls and results in them go together.

Sources as in ``anthropic_checks``; it never judges a single block.
"""

from collections.abc import Iterator
from typing import Any, TypeGuard

import msgspec

Json = dict[str, Any]


class Turn(msgspec.Struct):
    """What one side says in a row; `blocks` with the place that a refusal names."""

    role: Any
    last: int
    blocks: list[tuple[str, Json]]


def about_ids(request: Json) -> Iterator[str]:
    """ANSWERS: over the whole conversation."""
    taken: set[str] = set()
    for where, block in placed(messages_of(request)):
        if block.get("type") == "tool_use":
            if block.get("id") in taken:
                yield f"{where}: `tool_use` ids must be unique"
            taken.add(str(block.get("id")))


def about_pairs(request: Json) -> Iterator[str]:
    """TOOLS: results come at once, and before any text of the user's."""
    owed: list[str] = []
    asked = 0
    for turn in turns(messages_of(request)):
        results = [(w, str(b.get("tool_use_id"))) for w, b in turn.blocks if _is(b, "tool_result")]
        yield from _unexpected(results, owed)
        early = {str(block.get("tool_use_id")) for block in _leading_results(turn)}
        yield from _unanswered(asked, [name for name in owed if name not in early])
        calls = [str(block.get("id")) for _, block in turn.blocks if _is(block, "tool_use")]
        owed, asked = (calls, turn.last) if turn.role == "assistant" else ([], 0)
    yield from _unanswered(asked, owed)


def _unexpected(results: list[tuple[str, str]], owed: list[str]) -> Iterator[str]:
    seen: set[str] = set()
    for where, name in results:
        if name not in owed:
            yield (
                f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {name}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous "
                "message."
            )
        elif name in seen:
            yield (
                f"{where}: each tool_use must have a single result. Found multiple `tool_result` "
                f"blocks with id: {name}"
            )
        seen.add(name)


def _unanswered(index: int, names: list[str]) -> Iterator[str]:
    if names:
        yield (
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
            f"after: {', '.join(names)}. Each `tool_use` block must have a corresponding "
            "`tool_result` block in the next message."
        )


def _leading_results(turn: Turn) -> Iterator[Json]:
    for _, block in turn.blocks:
        if not _is(block, "tool_result"):
            return
        yield block


def turns(messages: list[Json]) -> list[Turn]:
    found: list[Turn] = []
    for index, message in enumerate(messages):
        if not found or found[-1].role != message.get("role"):
            found.append(Turn(message.get("role"), index, []))
        found[-1].last = index
        found[-1].blocks += _of_message(index, message)
    return found


def placed(messages: list[Json]) -> Iterator[tuple[str, Json]]:
    """All blocks, those inside of results too."""
    for index, message in enumerate(messages):
        for where, block in _of_message(index, message):
            yield where, block
            inner: Any = block.get("content") if _is(block, "tool_result") else None
            for place, part in enumerate(inner if is_list(inner) else []):
                yield f"{where}.tool_result.content.{place}", part


def _of_message(index: int, message: Json) -> list[tuple[str, Json]]:
    content: Any = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    blocks: list[Json] = content if is_list(content) else []
    return [(f"messages.{index}.content.{place}", block) for place, block in enumerate(blocks)]


def messages_of(request: Json) -> list[Json]:
    messages: Any = request.get("messages")
    return messages if is_list(messages) else []


def _is(block: Json, kind: str) -> bool:
    return block.get("type") == kind


def is_list(value: Any) -> TypeGuard[list[Json]]:
    return isinstance(value, list)
