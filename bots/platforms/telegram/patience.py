"""Repeats a step until it succeeds; it gives up only when the token is refused."""

import secrets
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bots.platforms.telegram.faults import described, fault_of, seconds_of
from bots.platforms.telegram.signs import Signs, State
from core.errors import StorageError
from core.ports import Clock

CONFLICT_SECONDS = 5.0
LONGEST_SECONDS = 30.0
_STEPS = 1000

Result = TypeVar("Result")


class TokenRefusedError(Exception):
    """There is no use in any further call."""


class Patience:
    def __init__(self, signs: Signs, clock: Clock, redact: Callable[[str], str]) -> None:
        self._signs = signs
        self._clock = clock
        self._redact = redact

    async def insist(self, step: Callable[[], Awaitable[Result]]) -> Result:
        """With growing pauses. Raises TokenRefusedError."""
        attempt = 0
        while True:
            try:
                return await step()
            except Exception as error:  # noqa: BLE001 - whatever it is, a deaf bot would be worse
                attempt += 1
                state, seconds = self._judged(error, attempt)
                self._signs.enter(state, described(error, self._redact))
            if state == "refused":
                raise TokenRefusedError
            await self._clock.sleep(seconds)

    def _judged(self, error: Exception, attempt: int) -> tuple[State, float]:
        """What it means, and the seconds to wait."""
        pause = _jittered(min(LONGEST_SECONDS, 2.0 ** min(attempt - 1, 10)))
        if isinstance(error, StorageError):
            return "not stored", pause
        match fault_of(error):
            case "refused":
                return "refused", 0.0
            case "conflict":
                return "conflict", _jittered(CONFLICT_SECONDS)
            case "slow down":
                return "unreachable", seconds_of(error) or pause
            case "moved" | "rejected":
                return "rejected", pause
            case "unsent" | "unknown":
                return "unreachable", pause


def _jittered(seconds: float) -> float:
    """Between the half and the whole, so that two instances do not keep step."""
    return seconds * (0.5 + 0.5 * secrets.randbelow(_STEPS) / _STEPS)
