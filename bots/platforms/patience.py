"""Repeats a step until it succeeds; it gives up only when the token is refused."""

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import msgspec
import structlog

from bots.platforms.signs import Signs, State
from core.errors import StorageError
from core.ports import Clock

LONGEST_SECONDS = 30.0
_STEPS = 1000

log = structlog.get_logger(__name__)

Result = TypeVar("Result")


class Judgement(msgspec.Struct, frozen=True):
    """What an error says of the platform. ``seconds`` to wait; None for growing pauses."""

    state: State
    detail: str
    seconds: float | None = None


class TokenRefusedError(Exception):
    """There is no use in any further call."""


class Patience:
    """``judge`` is asked about every error but StorageError."""

    def __init__(self, signs: Signs, clock: Clock, judge: Callable[[Exception], Judgement]) -> None:
        self._signs = signs
        self._clock = clock
        self._judge = judge

    async def insist(self, step: Callable[[], Awaitable[Result]]) -> Result:
        """With growing pauses. Raises TokenRefusedError."""
        attempt = 0
        while True:
            try:
                return await step()
            except TokenRefusedError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, a deaf bot would be worse
                attempt += 1
                judged = self._judged(error)
                self._signs.enter(judged.state, judged.detail)
            if judged.state == "refused":
                raise TokenRefusedError
            pause = jittered(min(LONGEST_SECONDS, 2.0 ** min(attempt - 1, 10)))
            await self._clock.sleep(pause if judged.seconds is None else judged.seconds)

    async def keep_at(self, work: Callable[[], Awaitable[None]]) -> None:
        """Begins it again whatever ends it, until the token is refused."""
        with suppress(TokenRefusedError):
            await self.insist(partial(_without_end, work))

    def _judged(self, error: Exception) -> Judgement:
        if isinstance(error, StorageError):
            return Judgement("not stored", f"{type(error).__name__}: {error}")
        return self._judge(error)


async def _without_end(work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except TokenRefusedError:
        raise
    except Exception:
        log.exception("an adapter's work broke off; it begins again")
        raise
    raise RuntimeError("it ended by itself")


def jittered(seconds: float) -> float:
    """Between the half and the whole, so that two instances do not keep step."""
    return seconds * (0.5 + 0.5 * secrets.randbelow(_STEPS) / _STEPS)
