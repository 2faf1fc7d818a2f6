"""What the model stand-in says, whole or in Anthropic's events; it sends nothing itself."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from tests.standins import openai_reply as openai
from tests.standins.tokens import Used

Json = dict[str, Any]
OVERLOADED: Json = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded"},
}


class Reply(openai.Reply, frozen=True, kw_only=True):
    """`finish_reason` is Anthropic's `stop_reason`; an event is a chunk.

    `overloaded_after` so many chunks the stream says so, and ends.
    """

    overloaded_after: int | None = None


class Answer(msgspec.Struct, frozen=True):
    """A reply to one request; `number` makes its ids, so that they are the same in each run."""

    reply: openai.Reply
    request: Json
    number: int
    used: Used

    @property
    def streams(self) -> bool:
        return bool(self.request.get("stream"))

    @property
    def stop_reason(self) -> str:
        return self.reply.finish_reason or ("tool_use" if self.reply.tool_calls else "end_turn")

    @property
    def usage(self) -> openai.Usage:
        return self.reply.usage or openai.Usage(
            self.used.total,
            len(self.reply.text) // 4 + 8 * len(self.reply.tool_calls),
        )

    def whole(self) -> Json:
        content = [*self._text(self.reply.text), *map(self._call, range(self._many))]
        return self._message(content, self.stop_reason, self.usage.completion_tokens)

    def chunks(self) -> Iterator[Json]:
        overloaded = self.reply.overloaded_after if isinstance(self.reply, Reply) else None
        for number, event in enumerate(self._events()):
            if number == overloaded:
                yield OVERLOADED
                return
            yield event

    @property
    def _many(self) -> int:
        return len(self.reply.tool_calls)

    def _events(self) -> Iterator[Json]:
        yield {"type": "message_start", "message": self._message([], None, 1)}
        yield {"type": "ping"}
        deltas = [{"type": "text_delta", "text": text} for text in self._pieces(self.reply.text)]
        if deltas:
            yield from _block(0, {"type": "text", "text": ""}, deltas)
        for number, call in enumerate(self.reply.tool_calls):
            pieces = self._pieces(json.dumps(call.arguments))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
            yield from _block(
                number + bool(self.reply.text), self._call(number) | {"input": {}}, deltas
            )
        delta = {"stop_reason": self.stop_reason, "stop_sequence": None}
        usage = {"output_tokens": self.usage.completion_tokens}
        yield {"type": "message_delta", "delta": delta, "usage": usage}
        yield {"type": "message_stop"}

    def _pieces(self, text: str) -> list[str]:
        size = self.reply.chunk_size
        return [text[start : start + size] for start in range(0, len(text), size)]

    def _text(self, text: str) -> list[Json]:
        return [{"type": "text", "text": text}] if text else []

    def _call(self, index: int) -> Json:
        call = self.reply.tool_calls[index]
        name = call.id or f"toolu_{self.number}_{index}"
        return {"type": "tool_use", "id": name, "name": call.name, "input": call.arguments}

    def _message(self, content: list[Json], stop_reason: str | None, output: int) -> Json:
        return {
            "id": f"msg_{self.number}",
            "type": "message",
            "role": "assistant",
            "model": self.request.get("model"),
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": self._used(output),
        }

    def _used(self, output: int) -> Json:
        """What is kept is counted apart; with a script there is nothing of it."""
        used = Used(0) if self.reply.usage else self.used
        return {
            "input_tokens": self.usage.prompt_tokens - used.read - used.written,
            "cache_creation_input_tokens": used.written,
            "cache_read_input_tokens": used.read,
            "output_tokens": output,
        }


def _block(index: int, empty: Json, deltas: list[dict[str, str]]) -> Iterator[Json]:
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}
