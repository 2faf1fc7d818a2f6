"""Which requests a model refuses."""

import base64
from typing import Any

import pytest

from tests.core.files.made import picture
from tests.standins.openai_checks import Json, violations

USER: Json = {"role": "user", "content": "hello"}


TEXT: Json = {"type": "text", "text": "look"}


def image(data: bytes, url: str = "") -> Json:
    url = url or f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def call(call_id: str, name: str = "now", arguments: str = "{}") -> Json:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def asks(*calls: Json) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def result(call_id: str, content: Any = "noon") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


LEGAL: dict[str, list[Json]] = {
    "one message": [USER],
    "two calls, results in any order": [
        {"role": "system", "content": "be kind"},
        USER,
        asks(call("a"), call("b")),
        result("b"),
        result("a", ""),
        {"role": "assistant", "content": "noon"},
        USER,
    ],
    "a picture": [{"role": "user", "content": [TEXT, image(picture())]}],
    "an id of forty": [USER, asks(call("a" * 40)), result("a" * 40)],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
}
ILLEGAL: dict[str, tuple[list[Json], str]] = {
    "no picture": ([{"role": "user", "content": [TEXT, image(b"GIF89a")]}], "invalid image"),
    "another kind": (
        [{"role": "user", "content": [TEXT, image(picture(kind="PNG"))]}],
        "invalid image",
    ),
    "a place for it": (
        [{"role": "user", "content": [TEXT, image(b"", "http://a/b.png")]}],
        "invalid image",
    ),
    "a picture of the model's": (
        [USER, {"role": "assistant", "content": [image(picture())]}],
        "content part of type 'image_url'",
    ),
    "an empty part": (
        [{"role": "user", "content": [{"type": "text", "text": ""}]}],
        "content part of type 'text'",
    ),
    "nothing": ([], "too short"),
    "no user": ([{"role": "system", "content": "be kind"}], "no user message"),
    "unknown role": ([USER, {"role": "bot", "content": "x"}], "invalid role"),
    "empty user": ([USER, {"role": "user", "content": ""}], "empty user message"),
    "empty answer": ([USER, {"role": "assistant", "content": None}], "empty assistant"),
    "no calls": ([USER, asks()], "empty array"),
    "result missing": ([USER, asks(call("a"), call("b")), result("a")], "no response for: b"),
    "result too late": (
        [USER, asks(call("a")), USER, result("a")],
        "no response for: a",
    ),
    "orphan result": ([USER, result("a")], "must be a response"),
    "result twice": ([USER, asks(call("a")), result("a"), result("a")], "must be a response"),
    "result of an earlier step": (
        [USER, asks(call("a")), result("a"), asks(call("b")), result("a"), result("b")],
        "must be a response",
    ),
    "one id twice": ([USER, asks(call("a"), call("a")), result("a")], "missing or doubled"),
    "bad name": ([USER, asks(call("a", name="to day")), result("a")], "bad name"),
    "half arguments": ([USER, asks(call("a", arguments='{"x')), result("a")], "not a JSON object"),
    "long id": ([USER, asks(call("a" * 41)), result("a" * 41)], "maximum length 40"),
    "no content": ([USER, asks(call("a")), result("a", None)], "needs content"),
}


@pytest.mark.parametrize("messages", LEGAL.values(), ids=LEGAL.keys())
def test_a_legal_request_passes(messages: list[Json]) -> None:
    assert violations({"model": "test", "messages": messages}) == []


@pytest.mark.parametrize(("messages", "reason"), ILLEGAL.values(), ids=ILLEGAL.keys())
def test_an_illegal_request_is_named(messages: list[Json], reason: str) -> None:
    assert reason in " ".join(violations({"model": "test", "messages": messages}))


def test_the_request_itself_is_looked_at() -> None:
    assert violations({"messages": [USER]}) == ["you must provide a model parameter"]
    tools: list[Json] = []
    found = violations({"model": "test", "messages": [USER], "tools": tools})
    assert found == ["'tools' is too short - minimum length 1"]
