"""Notes when the bot showed something to whom; it answers nothing and spoils nothing."""

import time
from collections.abc import Generator
from contextlib import contextmanager

import msgspec

from tests.standins.base import Call

SHOWN = ("sendMessage", "editMessageText", "sendMessageDraft", "sendChatAction")


class Touch(msgspec.Struct, frozen=True):
    """``at`` is Unix time, ``who`` the life that did it."""

    at: float
    who: str
    method: str
    chat: int


class Watch:
    """A hook of the stand-in, behind each call's effect."""

    def __init__(self) -> None:
        self.touches: list[Touch] = []

    def __call__(self, call: Call) -> None:
        if call.method in SHOWN:
            chat = int(call.params.get("chat_id") or 0)
            self.touches.append(Touch(time.time(), call.who, call.method, chat))


class Span(msgspec.Struct, kw_only=True):
    """Of one event of the storm: while it lasted, and until all was well again."""

    kind: str
    began: float
    ended: float = 0.0
    well: float = 0.0
    alone: bool = True
    note: str = ""


class Diary:
    """What happened when."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._open = 0

    @contextmanager
    def event(self, kind: str) -> Generator[Span]:
        span = Span(kind=kind, began=time.time(), alone=not self._open)
        self.spans.append(span)
        if self._open:
            for other in self.spans:
                if not other.well:
                    other.alone = False
        self._open += 1
        try:
            yield span
        finally:
            self._open -= 1
            span.well = time.time()
