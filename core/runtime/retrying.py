"""How long to wait before the next try, and trying until the database has it; never gives up while
there is hope."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TypeVar

import structlog

from core.errors import StorageError, UnstorableError
from core.ports import Clock

Result = TypeVar("Result")

SILENCE = timedelta(minutes=1)
"""Between two complaints of the same thing."""

log = structlog.get_logger(__name__)


def backoff(attempt: int, longest: float = 30.0) -> float:
    """Seconds before the try that follows ``attempt`` (from 1): 1, 2, 4, … up to ``longest``."""
    return min(longest, 2.0 ** min(attempt - 1, 30))


class Seldom:
    """Says of what is tried each second that it fails, but not each second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next: dict[str, datetime] = {}

    def warn(self, what: str, error: StorageError) -> None:
        now = self._clock.now()
        wait = self._next.get(what, now) - now
        if not timedelta(0) < wait <= SILENCE:
            self._next[what] = now + SILENCE
            log.warning(what, error=str(error))


async def insist(clock: Clock, write: Callable[[], Awaitable[Result]]) -> Result:
    """Writes until the database takes it: what has happened outside must not be forgotten. Raises
    UnstorableError, at once."""
    attempt = 0
    while True:
        try:
            return await write()
        except UnstorableError:
            raise
        except StorageError as error:
            attempt += 1
            log.warning("not stored yet", attempt=attempt, error=str(error))
            await clock.sleep(backoff(attempt))
