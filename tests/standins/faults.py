"""What a stand-in is told to do wrong, and when; it never decides this by chance."""

from collections import defaultdict, deque
from typing import Any

import msgspec

HTML_502 = (
    "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n"
    "<body><center><h1>502 Bad Gateway</h1></center></body>\r\n</html>\r\n"
)

ANY = "*"


class Refuse(msgspec.Struct, frozen=True):
    """An error in the platform's own shape; nothing is stored.

    `retry_after` in seconds. `code` is OpenAI's error code. `parameters` is Telegram's, for example
    `{"migrate_to_chat_id": -1001}`.
    """

    status: int
    text: str
    retry_after: int | None = None
    code: str | None = None
    parameters: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Raw(msgspec.Struct, frozen=True):
    """An answer that is not the platform's: a proxy's page, garbage. Nothing is stored."""

    status: int
    body: str
    content_type: str = "text/html"


class Reset(msgspec.Struct, frozen=True):
    """The connection is cut and nothing is stored."""


class StoreThenCut(msgspec.Struct, frozen=True):
    """The effect is stored, then the connection is cut: the client can't know."""


class Hang(msgspec.Struct, frozen=True):
    """No answer until the client leaves or the stand-in stops; the effect only if `stores`."""

    stores: bool = False


class Slow(msgspec.Struct, frozen=True):
    """The effect comes after so many seconds, even when the client has left by then."""

    seconds: float


Fault = Refuse | Raw | Reset | StoreThenCut | Hang | Slow

SERVER_ERROR = Refuse(500, "Internal Server Error")
BAD_GATEWAY = Raw(502, HTML_502)
NONSENSE = tuple(
    Raw(200, body, "application/json")
    for body in (
        '{"status": "ok"}',
        "[]",
        '{"ok": true}',
        "null",
        '"no"',
        "7",
        '{"ok": true, "result": []}',
    )
)
"""Of a proxy or a portal that answers in the platform's place."""
GARBAGE = Raw(200, '{"ok":true,"result":{"mess', "application/json")


def too_many(retry_after: int) -> Refuse:
    text = f"Too Many Requests: retry after {retry_after}"
    return Refuse(429, text, retry_after=retry_after, code="rate_limit_exceeded")


class RefusedError(Exception):
    """Raised inside a stand-in when a call breaks the platform's rules."""

    def __init__(self, refuse: Refuse) -> None:
        super().__init__(refuse.text)
        self.refuse = refuse


class FaultScript:
    """Faults by method name, or for `ANY` method: by ordinal first, then queued, then standing."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, int], Fault] = {}
        self._next: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._always: dict[str, Fault] = {}

    def at(self, method: str, nth: int, fault: Fault) -> None:
        """`nth` counts this method's calls from 1, over the stand-in's whole life."""
        self._at[method, nth] = fault

    def next(self, method: str, *faults: Fault) -> None:
        """One fault each for the method's next calls."""
        self._next[method].extend(faults)

    def always(self, method: str, fault: Fault) -> None:
        """Until `clear`."""
        self._always[method] = fault

    def clear(self) -> None:
        self._at.clear()
        self._next.clear()
        self._always.clear()

    def take(self, method: str, nth: int) -> Fault | None:
        if fault := self._at.pop((method, nth), None):
            return fault
        for name in (method, ANY):
            if self._next[name]:
                return self._next[name].popleft()
        return self._always.get(method) or self._always.get(ANY)
