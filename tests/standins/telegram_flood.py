"""Telegram's send limits as sliding windows; it delays nothing, it only says how long to wait."""

import math
import time
from collections import defaultdict, deque

import msgspec


class Window(msgspec.Struct, frozen=True):
    calls: int
    seconds: float


PRIVATE = Window(5, 5.0)
GROUP = Window(20, 60.0)
OVERALL = Window(30, 1.0)


class FloodLimits:
    """About 1 a second in a private chat, 20 a minute in a group, 30 a second in all (Bots FAQ).

    Short bursts pass. `violations` counts the refused calls by chat.
    """

    def __init__(
        self,
        private: Window = PRIVATE,
        group: Window = GROUP,
        overall: Window = OVERALL,
    ) -> None:
        self.violations: defaultdict[int, int] = defaultdict(int)
        self._private = private
        self._group = group
        self._overall = overall
        self._sent: defaultdict[int | None, deque[float]] = defaultdict(deque)

    def seconds_to_wait(self, chat_id: int, is_private: bool) -> int:
        """0 when the call may pass; it then counts."""
        moment = time.monotonic()
        chat_window = self._private if is_private else self._group
        wait = max(
            self._wait(chat_id, chat_window, moment),
            self._wait(None, self._overall, moment),
        )
        if wait > 0:
            self.violations[chat_id] += 1
            return math.ceil(wait)
        self._sent[chat_id].append(moment)
        self._sent[None].append(moment)
        return 0

    def _wait(self, key: int | None, window: Window, moment: float) -> float:
        sent = self._sent[key]
        while sent and sent[0] <= moment - window.seconds:
            sent.popleft()
        full = len(sent) >= window.calls
        return sent[0] + window.seconds - moment if full else 0.0
