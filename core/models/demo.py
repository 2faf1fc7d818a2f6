"""The built-in agent for a first try; it needs no key, no network, and makes nothing up."""

import re
from collections.abc import Awaitable, Callable

from core.domain.messages import ModelReply, ModelRequest, RequestSize, SystemMessage, Usage
from core.models.demo_replies import answer, calls_for
from core.models.demo_summary import is_asked, summary_of
from core.models.demo_view import view_of
from core.ports import OnText

WORD_PAUSE = 0.03
"""Seconds; about the pace of a real model."""
WINDOW = 8_000
"""Tokens; small enough to see in a terminal what becomes of a long conversation."""
_WORDS = re.compile(r"\S+\s*")


class DemoModel:
    """Deterministic: the same conversation gets the same answer."""

    name = "demo"

    def __init__(self, sleep: Callable[[float], Awaitable[None]], window: int = 0) -> None:
        """``window`` in tokens; 0 for its own."""
        self._sleep = sleep
        self._window = window or WINDOW

    async def measure(self, request: ModelRequest) -> RequestSize:
        prompt = sum(len(m.text) for m in request.messages if isinstance(m, SystemMessage))
        overhead = (prompt + _described(request)) // 4
        counted = _usage(request, "").prompt
        return RequestSize(counted=counted, overhead=overhead, window=self._window)

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        if is_asked(request):
            text = summary_of(request)
            return ModelReply(text=text, usage=_usage(request, text), model=self.name)
        view = view_of(request.messages)
        calls = calls_for(view, {tool.name for tool in request.tools})
        text = "" if calls else answer(view)
        await self._stream(text, on_text)
        return ModelReply(text=text, calls=calls, usage=_usage(request, text), model=self.name)

    async def _stream(self, text: str, on_text: OnText) -> None:
        for word in _WORDS.finditer(text):
            await self._sleep(WORD_PAUSE)
            on_text(text[: word.end()])


def _usage(request: ModelRequest, text: str) -> Usage:
    """One token is four characters."""
    prompt = sum(len(message.text) for message in request.messages) + _described(request)
    return Usage(prompt // 4 + 1, len(text) // 4 + 1)


def _described(request: ModelRequest) -> int:
    return sum(len(tool.description) for tool in request.tools)
