"""Which requests Anthropic refuses: each rule beside a twin that it lets pass."""

import base64
from typing import Any

import pytest

from tests.core.files.made import picture
from tests.standins import anthropic_pictures
from tests.standins.anthropic_checks import Json, prompt_tokens, violations

MODEL = "claude-sonnet-4-5"
TOOL: Json = {"name": "now", "input_schema": {"type": "object"}}
EPHEMERAL: Json = {"type": "ephemeral"}


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def user(*blocks: Json | str) -> Json:
    return {"role": "user", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def assistant(*blocks: Json | str) -> Json:
    return user(*blocks) | {"role": "assistant"}


def call(call_id: str, tool: str = "now", **more: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": {}, **more}


def result(call_id: str, content: Any = "noon", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def image(data: bytes, kind: str = "image/jpeg") -> Json:
    encoded = base64.b64encode(data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": encoded}}


def asked(*messages: Json, **more: Any) -> Json:
    return {"model": MODEL, "max_tokens": 64, "messages": list(messages), "tools": [TOOL]} | more


def without(request: Json, name: str) -> Json:
    return {key: value for key, value in request.items() if key != name}


HELLO = user("hello")
CAT = image(picture())
WIDE = image(picture((2001, 8)))
TALK = (HELLO, assistant("Let me look.", call("a"), call("b")))
ANSWERED = (*TALK, user(result("b"), result("a"), "and tell me more"))
MARKED = text("hello", cache_control=EPHEMERAL)

LEGAL: dict[str, Json] = {
    "one text": asked({"role": "user", "content": "hello"}),
    "calls, results in any order, a text after": asked(*ANSWERED),
    "two turns of one side": asked(HELLO, HELLO, assistant("a"), assistant("b"), HELLO),
    "results in two messages": asked(*TALK, user(result("a")), user(result("b"))),
    "a text of its own after results": asked(*TALK, user(result("a"), result("b")), HELLO),
    "calls in two messages": asked(
        HELLO, assistant(call("a")), assistant(call("b")), user(result("a"), result("b"))
    ),
    "results of all shapes": asked(
        *TALK, user(result("a", ""), without(result("b", is_error=True), "content"))
    ),
    "a result with a picture": asked(*TALK, user(result("a", [text("see"), CAT]), result("b"))),
    "a prefill": asked(HELLO, assistant("The time is")),
    "an empty prefill": asked(HELLO, {"role": "assistant", "content": []}),
    "a prefill by no text": asked(HELLO, {"role": "assistant", "content": ""}),
    "a space inside the talk": asked(HELLO, assistant("noon "), HELLO),
    "system as text": asked(HELLO, system="Be kind."),
    "system as blocks": asked(HELLO, system=[text("Be kind."), MARKED]),
    "no tools, no calls": without(asked(HELLO), "tools"),
    "a vendor's tool": asked(HELLO, tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    "a long name": asked(HELLO, tools=[TOOL | {"name": "n" * 128}]),
    "a call by a name of no tool": asked(HELLO, assistant(call("a", "n" * 200)), user(result("a"))),
    "no tokens, to warm a cache": asked(HELLO, max_tokens=0),
    "four marks": asked(user(MARKED, MARKED, MARKED), system=[MARKED]),
    "a picture": asked(user("look", CAT)),
    "a png": asked(user("look", image(picture(kind="PNG"), "image/png"))),
    "a picture elsewhere": asked(
        user({"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}})
    ),
    "a wide picture": asked(user("look", image(picture((8000, 8))))),
    "many pictures": asked(user("look", *[CAT] * 100)),
    "a block that is not known": asked(user("look", {"type": "search_result", "anything": 1})),
}
ILLEGAL: dict[str, tuple[Json, str]] = {
    "no model": (without(asked(HELLO), "model"), "model: Field required"),
    "no max_tokens": (without(asked(HELLO), "max_tokens"), "max_tokens: Field required"),
    "half a token": (asked(HELLO, max_tokens=0.5), "max_tokens: Input should be a valid integer"),
    "less than none": (asked(HELLO, max_tokens=-1), "max_tokens: Input should be greater"),
    "a field of another vendor": (
        asked(HELLO, stream_options={}),
        "stream_options: Extra inputs are not permitted",
    ),
    "no messages": (asked(), "at least one message is required"),
    "messages missing": (without(asked(), "messages"), "messages: Field required"),
    "the assistant first": (asked(assistant("hi"), HELLO), 'first message must use the "user"'),
    "system as a role": (
        asked({"role": "system", "content": "Be kind."}, HELLO),
        'Unexpected role "system"',
    ),
    "a role of another vendor": (
        asked(HELLO, HELLO | {"role": "tool"}),
        "messages.1.role: Input should be 'user' or 'assistant'",
    ),
    "a name of the speaker": (
        asked(HELLO | {"name": "Ann"}),
        "messages.0.name: Extra inputs are not permitted",
    ),
    "system as a number": (asked(HELLO, system=7), "system: Input should be a valid list"),
    "a picture as system": (asked(HELLO, system=[CAT]), "system.0.type: Input should be 'text'"),
    "an empty system": (asked(HELLO, system=[text("")]), "system: text content blocks must be non"),
    "a blank system": (
        asked(HELLO, system=[text(" ")]),
        "system: text content blocks must contain",
    ),
    "an empty text": (asked(user("")), "messages: text content blocks must be non-empty"),
    "a blank text": (asked(user("hi", "\n")), "messages: text content blocks must contain non-w"),
    "a blank content": (
        asked({"role": "user", "content": " "}),
        "messages: text content blocks must contain non-whitespace text",
    ),
    "a blank reply": (asked(HELLO, assistant("\n\n"), HELLO), "must contain non-whitespace text"),
    "a mark on nothing": (
        asked(user("hi", text("", cache_control=EPHEMERAL))),
        "messages.0.content.1.text: cache_control cannot be set for empty text blocks",
    ),
    "an empty message": (
        asked({"role": "user", "content": ""}),
        "messages.0: all messages must have non-empty content",
    ),
    "an empty list": (asked(user()), "messages.0: all messages must have non-empty content"),
    "an empty reply": (
        asked(HELLO, assistant(), HELLO),
        "messages.1: all messages must have non-empty content",
    ),
    "no content": (
        asked(without(HELLO, "content")),
        "messages.0.content: Input should be a valid list",
    ),
    "a text without words": (
        asked(user({"type": "text"})),
        "messages.0.content.0.text.text: Field required",
    ),
    "a text with more": (
        asked(user(text("hi", id="x"))),
        "messages.0.content.0.text.id: Extra inputs are not permitted",
    ),
    "a prefill that ends in space": (
        asked(HELLO, assistant("The time is ")),
        "final assistant content cannot end with trailing whitespace",
    ),
    "a prefill for a model that takes none": (
        asked(HELLO, assistant("The time is"), model="claude-opus-4-6"),
        "does not support assistant message prefill",
    ),
    "no result": (
        asked(*TALK, HELLO),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "a, b.",
    ),
    "no message after the calls": (asked(*TALK), "immediately after: a, b."),
    "a result missing": (asked(*TALK, user(result("a"))), "immediately after: b."),
    "a text first": (asked(*TALK, user("so", result("a"), result("b"))), "after: a, b."),
    "a message first": (asked(*TALK, HELLO, user(result("a"), result("b"))), "after: a, b."),
    "a text between": (asked(*TALK, user(result("a"), "so", result("b"))), "after: b."),
    "a result too late": (
        asked(*TALK, user(result("a")), assistant("so"), user(result("b"))),
        "messages.4.content.0: unexpected `tool_use_id` found in `tool_result` blocks: b.",
    ),
    "a result of nothing": (asked(user(result("a"))), "messages.0.content.0: unexpected"),
    "a result twice": (
        asked(*TALK, user(result("a"), result("b"), result("a"))),
        "messages.2.content.2: each tool_use must have a single result",
    ),
    "one id twice": (
        asked(*ANSWERED, assistant(call("a")), user(result("a"))),
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
    "an id of another vendor": (
        asked(HELLO, assistant(call("now:0")), user(result("now:0"))),
        "messages.1.content.0.tool_use.id: String should match pattern",
    ),
    "a result by an id of another vendor": (
        asked(HELLO, assistant(call("now:0")), user(result("now:0"))),
        "messages.2.content.0.tool_result.tool_use_id: String should match pattern",
    ),
    "a call by the user": (
        asked(user(call("a")), user(result("a"))),
        "messages.0: `tool_use` blocks can only be in `assistant` messages",
    ),
    "a result by the assistant": (
        asked(*TALK, assistant(result("a"), result("b"))),
        "messages.2: `tool_result` blocks can only be in `user` messages",
    ),
    "a call without a name": (
        asked(HELLO, assistant(call("a", "")), user(result("a"))),
        "tool_use.name: String should have at least 1 character",
    ),
    "a call by an endless name": (
        asked(HELLO, assistant(call("a", "n" * 201)), user(result("a"))),
        "tool_use.name: String should have at most 200 characters",
    ),
    "arguments as text": (
        asked(HELLO, assistant(call("a", input="{}")), user(result("a"))),
        "tool_use.input: Input should be a valid dictionary",
    ),
    "a result as an object": (
        asked(*TALK, user(result("a", {"at": 12}), result("b"))),
        "messages.2.content.0.tool_result.content: Input should be a valid list",
    ),
    "a result of a text without words": (
        asked(*TALK, user(result("a", [{"type": "text"}]), result("b"))),
        "tool_result.content.0.text.text: Field required",
    ),
    "a result with the tool's name": (
        asked(*TALK, user(result("a", name="now"), result("b"))),
        "messages.2.content.0.tool_result.name: Extra inputs are not permitted",
    ),
    "calls and no tools": (without(asked(*ANSWERED), "tools"), "must define tools"),
    "a tool's bad name": (
        asked(HELLO, tools=[TOOL | {"name": "what time"}]),
        "tools.0.custom.name: String should match pattern",
    ),
    "a tool's endless name": (
        asked(HELLO, tools=[TOOL | {"name": "n" * 129}]),
        "tools.0.custom.name: String should match pattern",
    ),
    "a tool without a schema": (
        asked(HELLO, tools=[{"name": "now"}]),
        "tools.0.custom.input_schema: Field required",
    ),
    "a schema of no object": (
        asked(HELLO, tools=[TOOL | {"input_schema": {}}]),
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    "one name twice": (asked(HELLO, tools=[TOOL, TOOL]), "Tool names must be unique"),
    "five marks": (
        asked(user(MARKED, MARKED), system=[MARKED, MARKED], tools=[TOOL | MARKED]),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "a mark inside of a result": (
        asked(
            *TALK,
            user(result("a", [MARKED, MARKED]), result("b", cache_control=EPHEMERAL)),
            system=[MARKED, MARKED],
        ),
        "Found 5.",
    ),
    "no picture": (
        asked(user(image(b"GIF89a"))),
        "messages.0.content.0.image.source.base64.data: Could not process image",
    ),
    "another kind": (
        asked(user(image(picture(kind="PNG")))),
        "Image does not match the provided media type image/jpeg",
    ),
    "a kind that is not taken": (
        asked(user(image(picture(kind="BMP"), "image/bmp"))),
        "base64.media_type: Input should be 'image/jpeg'",
    ),
    "a picture without data": (
        asked(user({"type": "image", "source": {"type": "base64"}})),
        "image.source: Field required",
    ),
    "a picture of the assistant's": (
        asked(HELLO, assistant(CAT), HELLO),
        "messages.1.content: 'image' blocks are not permitted within assistant turns.",
    ),
    "a picture too wide": (
        asked(user(image(picture((8001, 8))))),
        "exceed max allowed size: 8000 pixels",
    ),
    "too wide among many": (
        asked(user(*[CAT] * 20, WIDE)),
        "messages.0.content.20.image.source.base64.data: At least one of the image dimensions "
        "exceed max allowed size for many-image requests: 2000 pixels",
    ),
    "too many pictures": (
        asked(user(*[CAT] * 101)),
        "Too much media: 0 document pages + 101 images > 100",
    ),
}


@pytest.mark.parametrize("request_", LEGAL.values(), ids=LEGAL.keys())
def test_a_legal_request_passes(request_: Json) -> None:
    assert violations(request_) == []


@pytest.mark.parametrize(("request_", "sentence"), ILLEGAL.values(), ids=ILLEGAL.keys())
def test_an_illegal_request_is_refused_in_anthropics_words(request_: Json, sentence: str) -> None:
    assert sentence in "\n".join(violations(request_))


def test_a_picture_is_as_large_as_its_text() -> None:
    most = anthropic_pictures.LARGEST // 4 * 3
    fits, too_large = (picture() + bytes(most - len(picture()) + more) for more in (0, 1))

    assert violations(asked(user(image(fits)))) == []
    (sentence,) = violations(asked(user(image(too_large))))
    assert sentence.endswith("image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes")


def test_a_long_window_takes_more_pictures() -> None:
    assert violations(asked(user("look", *[CAT] * 101)), window=1_000_000) == []


def test_system_tools_and_messages_are_counted_together() -> None:
    less = prompt_tokens(asked(HELLO))

    assert prompt_tokens(asked(HELLO, system="long " * 1000)) - less > 1000
    assert prompt_tokens(asked(user("long " * 1000))) - less > 900
    assert prompt_tokens(asked(HELLO, tools=[{"name": "now", "description": "x " * 500}])) > 500


def test_a_picture_costs_what_it_shows_and_not_its_bytes() -> None:
    small, large = (prompt_tokens(asked(user(image(data)))) for data in (b"x", bytes(300_000)))

    assert small == large
