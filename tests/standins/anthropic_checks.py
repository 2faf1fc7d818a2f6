"""What Anthropic refuses in a Messages request, as its own sentences; it never changes the request.

Sources, by the names that the rules below give:
MESSAGES  platform.claude.com/docs/en/api/messages
TOOLS     platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use
VISION    platform.claude.com/docs/en/build-with-claude/vision
CACHING   platform.claude.com/docs/en/build-with-claude/prompt-caching
PREFILL   platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-6
ANSWERS   sentences that the API gave to others, in the issues of anthropics/claude-code

Consecutive turns of one role are combined (MESSAGES), so they are judged as one. What is not sure
is not refused: a model's own limit of `max_tokens`, an empty text inside a tool's result, a text
after the calls of an assistant, an empty `system` that is no list.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tests.standins.anthropic_pictures import PICTURE_TOKENS, about_pictures
from tests.standins.anthropic_turns import (
    Json,
    Turn,
    about_ids,
    about_pairs,
    is_list,
    messages_of,
    placed,
    turns,
)
from tests.standins.tokens import Piece, count, schema, words

WINDOW = 200_000
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
LONGEST_CALLED_NAME = 200
MOST_BREAKPOINTS = 4
MOST_PICTURES, MOST_IN_A_LONG_WINDOW = 100, 600
"""VISION."""
NO_PREFILL = re.compile(r"claude-(?:opus|sonnet)-4-[6-9]|claude-[a-z]+-[5-9]")
FIELDS = frozenset(
    {
        *("model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream"),
        *("temperature", "top_p", "top_k", "stop_sequences", "metadata", "service_tier"),
        *("thinking", "container", "mcp_servers", "context_management", "output_config"),
        *("output_format", "cache_control", "inference_geo"),
    }
)
BLOCKS = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
}
ONLY_BY = {"tool_use": "assistant", "tool_result": "user"}
EMPTY_MESSAGE = (
    "all messages must have non-empty content except for the optional final assistant message"
)
NO_SYSTEM_ROLE = (
    'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
    'not "system" as an input message role.'
)
NO_TOOLS = "Requests which include `tool_use` or `tool_result` blocks must define tools."


def violations(request: Json, window: int = WINDOW) -> list[str]:
    """`window` in tokens: how much it takes of media; what is too long is told by `too_long`."""
    rules: tuple[Callable[[Json], Iterator[str]], ...] = (
        _about_fields,
        _about_system,
        _about_tools,
        _about_order,
        _about_messages,
        about_ids,
        about_pairs,
        _about_breakpoints,
    )
    found = [sentence for rule in rules for sentence in rule(request)]
    most = MOST_PICTURES if window <= WINDOW else MOST_IN_A_LONG_WINDOW
    return found + about_pictures([*placed(messages_of(request))], most)


def too_long(tokens: int, window: int) -> str:
    return f"prompt is too long: {tokens} tokens > {window} maximum"


def prompt_tokens(request: Json) -> int:
    return sum(count(piece.text) + piece.more for piece in pieces(request))


def pieces(request: Json) -> Iterator[Piece]:
    """Of the prompt, in the order of CACHING; a picture counts by the most it can cost (VISION)."""
    system: Any = request.get("system") or []
    tools: list[Json] = request.get("tools") or []
    yield from (Piece(schema(tool), 0, bool(tool.get("cache_control"))) for tool in tools)
    blocks: list[Json] = [*system] if is_list(system) else [{"text": system}]
    for message in messages_of(request):
        content: Any = message.get("content")
        own: list[Json] = content if is_list(content) else [{"text": content}]
        blocks += [{"role": message.get("role"), **block} for block in own]
    for block in blocks:
        marked = bool(block.get("cache_control"))
        if block.get("type") == "image":
            yield Piece("", PICTURE_TOKENS, marked, words(block))
        else:
            yield Piece(words(block), 0, marked)


def _about_fields(request: Json) -> Iterator[str]:
    """MESSAGES; the API takes no field that it does not know (ANSWERS)."""
    for name in ("model", "messages", "max_tokens"):
        if request.get(name) is None:
            yield f"{name}: Field required"
    for name in sorted(request.keys() - FIELDS):
        yield f"{name}: Extra inputs are not permitted"
    most = request.get("max_tokens", 1)
    if not isinstance(most, int) or isinstance(most, bool):
        yield "max_tokens: Input should be a valid integer"
    elif most < 0:
        yield "max_tokens: Input should be greater than or equal to 0"
    if request.get("messages") == []:
        yield "messages: at least one message is required"


def _about_system(request: Json) -> Iterator[str]:
    """MESSAGES: a text, or a list of text blocks."""
    system: Any = request.get("system")
    if system is not None and not isinstance(system, str | list):
        yield "system: Input should be a valid list"
    if not is_list(system):
        return
    for index, block in enumerate(system):
        if block.get("type") != "text":
            yield f"system.{index}.type: Input should be 'text'"
        else:
            yield from _about_text(f"system.{index}", "system", block)


def _about_tools(request: Json) -> Iterator[str]:
    """TOOLS; a name stands for one tool only (ANSWERS)."""
    tools: list[Json] = request.get("tools") or []
    for index, tool in enumerate(tools):
        if tool.get("type", "custom") == "custom":
            yield from _about_tool(f"tools.{index}.custom", tool)
    names = Counter(str(tool.get("name")) for tool in tools)
    if names and max(names.values()) > 1:
        yield "tools: Tool names must be unique."
    blocks = [block.get("type") for _, block in placed(messages_of(request))]
    if not tools and any(kind in ONLY_BY for kind in blocks):
        yield NO_TOOLS


def _about_tool(where: str, tool: Json) -> Iterator[str]:
    if not TOOL_NAME.fullmatch(str(tool.get("name", ""))):
        yield f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
    schema: Any = tool.get("input_schema")
    if not isinstance(schema, dict):
        yield f"{where}.input_schema: Field required"
    elif schema.get("type") != "object":  # pyright: ignore[reportUnknownMemberType]
        yield f"{where}.input_schema.type: Input should be 'object'"


def _about_order(request: Json) -> Iterator[str]:
    """MESSAGES for the roles, PREFILL for a last word of the assistant's."""
    messages = messages_of(request)
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "system":
            yield NO_SYSTEM_ROLE
        elif role not in ("user", "assistant"):
            yield f"messages.{index}.role: Input should be 'user' or 'assistant'"
        for name in sorted(message.keys() - {"role", "content"}):
            yield f"messages.{index}.{name}: Extra inputs are not permitted"
    if messages and messages[0].get("role") == "assistant":
        yield 'messages: first message must use the "user" role'
    if messages and messages[-1].get("role") == "assistant":
        yield from _about_prefill(str(request.get("model")), turns(messages)[-1])


def _about_prefill(model: str, last: Turn) -> Iterator[str]:
    if NO_PREFILL.search(model):
        yield (
            "This model does not support assistant message prefill. The conversation must end with "
            "a user message."
        )
    text = str(last.blocks[-1][1].get("text", "")) if last.blocks else ""
    if text != text.rstrip():
        yield "messages: final assistant content cannot end with trailing whitespace"


def _about_messages(request: Json) -> Iterator[str]:
    """MESSAGES for the shapes, ANSWERS for texts without a visible character."""
    messages = messages_of(request)
    for index, message in enumerate(messages):
        content: Any = message.get("content")
        is_prefill = index == len(messages) - 1 and message.get("role") == "assistant"
        if content in ("", []) and not is_prefill:
            yield f"messages.{index}: {EMPTY_MESSAGE}"
        elif not isinstance(content, str | list):
            yield f"messages.{index}.content: Input should be a valid list"
        elif isinstance(content, str) and content and not content.strip():
            yield "messages: text content blocks must contain non-whitespace text"
        elif is_list(content):
            for place, block in enumerate(content):
                yield from _about_block(index, place, message.get("role"), block)


def _about_block(index: int, place: int, role: Any, block: Json) -> Iterator[str]:
    where, kind = f"messages.{index}.content.{place}", str(block.get("type"))
    if kind not in BLOCKS:
        return
    for name in sorted(block.keys() - BLOCKS[kind]):
        yield f"{where}.{kind}.{name}: Extra inputs are not permitted"
    if role in ("user", "assistant") and role != ONLY_BY.get(kind, role):
        yield f"messages.{index}: `{kind}` blocks can only be in `{ONLY_BY[kind]}` messages"
    if kind == "image" and role == "assistant":
        yield f"messages.{index}.content: 'image' blocks are not permitted within assistant turns."
    if kind == "text":
        yield from _about_text(f"{where}.text", "messages", block)
    elif kind == "tool_use":
        yield from _about_call(f"{where}.tool_use", block)
    elif kind == "tool_result":
        yield from _about_result(f"{where}.tool_result", block)


def _about_text(where: str, whose: str, block: Json) -> Iterator[str]:
    text: Any = block.get("text")
    if not isinstance(text, str):
        yield f"{where}.text: Field required"
    elif not text:
        yield f"{whose}: text content blocks must be non-empty"
        if block.get("cache_control"):
            yield f"{where}: cache_control cannot be set for empty text blocks"
    elif not text.strip():
        yield f"{whose}: text content blocks must contain non-whitespace text"


def _about_call(where: str, block: Json) -> Iterator[str]:
    """ANSWERS: a name that was called may be longer than a tool's, and need not be one."""
    if not CALL_ID.fullmatch(str(block.get("id", ""))):
        yield f"{where}.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    name = str(block.get("name", ""))
    if not name:
        yield f"{where}.name: String should have at least 1 character"
    if len(name) > LONGEST_CALLED_NAME:
        yield f"{where}.name: String should have at most {LONGEST_CALLED_NAME} characters"
    if not isinstance(block.get("input"), dict):
        yield f"{where}.input: Input should be a valid dictionary"


def _about_result(where: str, block: Json) -> Iterator[str]:
    """TOOLS: the content may be missing, a text, or blocks."""
    if not CALL_ID.fullmatch(str(block.get("tool_use_id", ""))):
        yield f"{where}.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    content: Any = block.get("content")
    if content is not None and not isinstance(content, str | list):
        yield f"{where}.content: Input should be a valid list"
    for place, part in enumerate(content if is_list(content) else []):
        if part.get("type") == "text" and not isinstance(part.get("text"), str):
            yield f"{where}.content.{place}.text.text: Field required"


def _about_breakpoints(request: Json) -> Iterator[str]:
    """CACHING: over tools, system and messages together."""
    system: Any = request.get("system")
    blocks = [block for _, block in placed(messages_of(request))]
    marked: list[Json] = [
        *(request.get("tools") or []),
        *(system if is_list(system) else []),
        *blocks,
    ]
    many = sum(bool(block.get("cache_control")) for block in marked)
    if many > MOST_BREAKPOINTS:
        most = f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided."
        yield f"{most} Found {many}."
