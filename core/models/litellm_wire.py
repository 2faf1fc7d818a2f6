"""Our values to and from the chat format that litellm speaks; it never calls anything."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, assert_never

import msgspec

from core.domain.messages import (
    AssistantMessage,
    ChatMessage,
    ModelFailure,
    ModelReply,
    Picture,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from core.models.litellm_ids import with_legal_ids

EMPTY = "(empty)"
"""Stands for a text without a visible character, which several vendors refuse."""


class Function(Protocol):
    name: str | None
    arguments: str | None


class CallPiece(Protocol):
    index: int | None
    id: str | None
    function: Function


class Delta(Protocol):
    content: str | None
    tool_calls: Sequence[CallPiece] | None


class Choice(Protocol):
    delta: Delta
    finish_reason: str | None


class ReportedUsage(Protocol):
    prompt_tokens: int | None
    completion_tokens: int | None

    @property
    def prompt_tokens_details(self) -> "Details | None": ...


class Details(Protocol):
    """``cached_tokens`` are among those of the prompt, and need not be there."""

    @property
    def cached_tokens(self) -> int | None: ...


class Chunk(Protocol):
    """What of litellm's ModelResponseStream is read; ``usage`` comes with the last one only."""

    model: str | None
    choices: Sequence[Choice]


BLIND = "you cannot see it, since the model that is set up here takes no pictures; say so"
GONE = "its file is gone"


def messages_of(
    messages: tuple[ChatMessage, ...],
    files: Mapping[str, bytes] | None = None,
    *,
    signed: bool = False,
) -> list[dict[str, Any]]:
    """``files`` are the pictures by hash; None for a model that does not see. ``signed`` is for a
    model that wants its thoughts back in the ids of its calls."""
    return [_message(message, files) for message in with_legal_ids(messages, signed=signed)]


def tools_of(tools: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": msgspec.structs.asdict(tool)} for tool in tools]


class Assembly:
    """One reply growing out of chunks."""

    def __init__(self) -> None:
        self.text = ""
        self.model = ""
        self.usage: ReportedUsage | None = None
        self._finish = ""
        self._calls: list[_GrowingCall] = []

    def add(self, chunk: Chunk) -> bool:
        """Whether there is more text than before."""
        self.model = chunk.model or self.model
        self.usage = getattr(chunk, "usage", None) or self.usage
        before = len(self.text)
        for choice in chunk.choices[:1]:
            self._finish = choice.finish_reason or self._finish
            self.text += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                self._call_of(piece).add(piece)
        return len(self.text) > before

    def finish(self, usage: Usage) -> ModelReply | ModelFailure:
        """For a stream that ended properly; what arrived by halves is no reply."""
        cut = self._finish == "length"
        if not self._finish:
            return ModelFailure(kind="try_again", detail="the stream ended before the reply did")
        if self._finish == "content_filter":
            return ModelFailure(kind="refused", detail="the vendor's content filter stopped it")
        calls = tuple(call for call in self._finished_calls() if not cut or is_whole(call))
        return ModelReply(text=self.text, calls=calls, usage=usage, model=self.model, cut=cut)

    def _call_of(self, piece: CallPiece) -> "_GrowingCall":
        """By index; an id of its own opens a new call where a vendor does not count."""
        for call in reversed(self._calls):
            same_id = not piece.id or not call.id or piece.id == call.id
            if same_id and piece.index in (None, call.index):
                return call
        self._calls.append(_GrowingCall(piece.index if piece.index is not None else -1))
        return self._calls[-1]

    def _finished_calls(self) -> Iterator[ToolCall]:
        taken = set[str]()
        for number, call in enumerate(self._calls):
            wanted = call.id or f"call_{number}"
            call_id = wanted if wanted not in taken else f"{wanted}_{number}"
            taken.add(call_id)
            yield ToolCall(call_id, call.name, call.arguments)


class _GrowingCall:
    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = ""

    def add(self, piece: CallPiece) -> None:
        self.id = self.id or piece.id or ""
        self.name = self.name or piece.function.name or ""
        self.arguments += piece.function.arguments or ""


def is_whole(call: ToolCall) -> bool:
    try:
        return isinstance(msgspec.json.decode(call.arguments), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


def _message(message: ChatMessage, files: Mapping[str, bytes] | None) -> dict[str, Any]:
    match message:
        case SystemMessage(text):
            return {"role": "system", "content": _visible(text)}
        case UserMessage(text, ()):
            return {"role": "user", "content": _visible(text)}
        case UserMessage():
            return {"role": "user", "content": _with_pictures(message, files)}
        case AssistantMessage(text, ()):
            return {"role": "assistant", "content": _visible(text)}
        case AssistantMessage(text, calls):
            content = text if text.strip() else None
            return {
                "role": "assistant",
                "content": content,
                "tool_calls": [_call(call) for call in calls],
            }
        case ToolMessage(call_id, name, text):
            content = _visible(text)
            return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}
        case _:
            assert_never(message)


def _with_pictures(
    message: UserMessage, files: Mapping[str, bytes] | None
) -> str | list[dict[str, Any]]:
    why = BLIND if files is None else GONE
    seen = [picture for picture in message.pictures if picture.sha in (files or {})]
    notes = [f"[{p.label}: {why}]" for p in message.pictures if p not in seen]
    text = "\n".join([message.text, *notes])
    if not seen or files is None:
        return _visible(text)
    parts = [{"type": "text", "text": _visible(text)}]
    return [*parts, *(_image(picture, files[picture.sha]) for picture in seen)]


def _image(picture: Picture, data: bytes) -> dict[str, Any]:
    url = f"data:{picture.mime};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _call(call: ToolCall) -> dict[str, Any]:
    """Arguments that are no JSON object would have the whole request refused."""
    arguments = call.arguments if is_whole(call) else "{}"
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _visible(text: str) -> str:
    return text if text.strip() else EMPTY
