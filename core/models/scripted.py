"""A model for tests that says what it was told to; it never makes up a reply."""

import asyncio
from collections import deque
from collections.abc import Callable

from core.domain.messages import ModelFailure, ModelReply, ModelRequest, RequestSize
from core.ports import OnText

Result = ModelReply | ModelFailure
Line = str | Result | Callable[[ModelRequest], str | Result]


class ScriptedModel:
    """One line a call, in order; a string is a reply of that text. ``requests`` are all calls.

    Raises AssertionError when the script is over. After ``hold`` calls wait for ``release``, and a
    call that is cancelled meanwhile takes no line.
    """

    def __init__(self, *lines: Line, name: str = "scripted") -> None:
        self._name = name
        self._lines = deque(lines)
        self.size: Callable[[ModelRequest], RequestSize] = lambda request: RequestSize()
        self._open = asyncio.Event()
        self._open.set()
        self.requests: list[ModelRequest] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def left(self) -> int:
        return len(self._lines)

    def then(self, *lines: Line) -> None:
        self._lines.extend(lines)

    def hold(self) -> None:
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    async def measure(self, request: ModelRequest) -> RequestSize:
        return self.size(request)

    async def complete(self, request: ModelRequest, on_text: OnText) -> Result:
        self.requests.append(request)
        await self._open.wait()
        if not self._lines:
            raise AssertionError(f"the script is over; asked for {request.messages[-1]}")
        result = _say(self._lines.popleft(), request)
        if isinstance(result, ModelReply) and result.text:
            on_text(result.text)
        return result


def _say(line: Line, request: ModelRequest) -> Result:
    said = line(request) if callable(line) else line
    return ModelReply(text=said, model="scripted") if isinstance(said, str) else said
