"""What the model stand-in says, whole or in OpenAI's chunks; it sends nothing itself."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from tests.standins.tokens import Used

Json = dict[str, Any]


class ToolCall(msgspec.Struct, frozen=True):
    name: str
    arguments: Json = msgspec.field(default_factory=dict[str, Any])
    id: str = ""


class Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """`delay_per_chunk` in seconds; `chunk_size` in characters.

    After so many chunks: `hang_after` waits until the client leaves, `cut_after` breaks the
    connection, `garbage_after` sends a line that is no JSON and ends.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    finish_reason: str | None = None
    chunk_size: int = 12
    delay_per_chunk: float = 0.0
    hang_after: int | None = None
    cut_after: int | None = None
    garbage_after: int | None = None


class Answer(msgspec.Struct, frozen=True):
    """A reply to one request; `number` makes its ids, so that they are the same in each run."""

    reply: Reply
    request: Json
    number: int
    used: Used

    @property
    def streams(self) -> bool:
        return bool(self.request.get("stream"))

    @property
    def finish_reason(self) -> str:
        return self.reply.finish_reason or ("tool_calls" if self.reply.tool_calls else "stop")

    @property
    def usage(self) -> Json:
        """With a script nothing is said of what was kept."""
        usage = self.reply.usage or Usage(
            self.used.total, len(self.reply.text) // 4 + 8 * len(self.reply.tool_calls)
        )
        kept = {"prompt_tokens_details": {"cached_tokens": self.used.read}}
        return (
            msgspec.to_builtins(usage)
            | {"total_tokens": usage.prompt_tokens + usage.completion_tokens}
            | ({} if self.reply.usage else kept)
        )

    def whole(self) -> Json:
        message: Json = {"role": "assistant", "content": self.reply.text or None}
        if self.reply.tool_calls:
            message["tool_calls"] = [
                self._call(index, json.dumps(call.arguments))
                for index, call in enumerate(self.reply.tool_calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return self._envelope("chat.completion", [choice]) | {"usage": self.usage}

    def chunks(self) -> Iterator[Json]:
        yield self._chunk({"role": "assistant", "content": ""})
        size = self.reply.chunk_size
        for start in range(0, len(self.reply.text), size):
            yield self._chunk({"content": self.reply.text[start : start + size]})
        for index, call in enumerate(self.reply.tool_calls):
            yield from self._call_chunks(index, json.dumps(call.arguments))
        yield self._chunk({}, self.finish_reason)
        options: Json = self.request.get("stream_options") or {}
        if options.get("include_usage"):
            yield self._envelope("chat.completion.chunk", []) | {"usage": self.usage}

    def _call_chunks(self, index: int, arguments: str) -> Iterator[Json]:
        yield self._chunk({"tool_calls": [self._call(index, "") | {"index": index}]})
        for start in range(0, len(arguments), self.reply.chunk_size):
            piece = arguments[start : start + self.reply.chunk_size]
            yield self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})

    def _call(self, index: int, arguments: str) -> Json:
        call = self.reply.tool_calls[index]
        return {
            "id": call.id or f"call_{self.number}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": arguments},
        }

    def _chunk(self, delta: Json, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._envelope("chat.completion.chunk", [choice])

    def _envelope(self, kind: str, choices: list[Json]) -> Json:
        return {
            "id": f"chatcmpl-{self.number}",
            "object": kind,
            "created": 1,
            "model": self.request.get("model"),
            "choices": choices,
        }


def last_user_text(request: Json) -> str:
    """Of the newest user message, for replies that depend on it."""
    for message in reversed(request["messages"]):
        if message["role"] == "user":
            return text_of(message["content"])
    return ""


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)
