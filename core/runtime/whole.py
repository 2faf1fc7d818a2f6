"""What must not be left half done is done to its end, even when who began it is cancelled; it does
not try again."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

import structlog

Result = TypeVar("Result")

log = structlog.get_logger(__name__)


class Ended(Generic[Result]):
    """Work that has ended, and the cancellation that came meanwhile: it was held back, and is still
    to be raised, by ``go_on``."""

    def __init__(
        self, task: asyncio.Task[Result], cancelled: asyncio.CancelledError | None
    ) -> None:
        self._task = task
        self._cancelled = cancelled

    @property
    def cancelled(self) -> bool:
        return self._cancelled is not None

    def result(self) -> Result:
        """Raises the work's own error; CancelledError where both came."""
        try:
            return self._task.result()
        except Exception as error:
            if self._cancelled is None:
                raise
            log.info("failed after it was cancelled", error=repr(error))
            raise self._cancelled from error

    def go_on(self) -> None:
        """Raises CancelledError, or not."""
        if self._cancelled is not None:
            raise self._cancelled


async def ended(work: Coroutine[Any, Any, Result]) -> Ended[Result]:
    """In a task of its own."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    return Ended(task, cancelled)


async def whole(work: Coroutine[Any, Any, Result]) -> Result:
    """For work whose result nobody has to care for when a cancellation comes meanwhile."""
    done = await ended(work)
    result = done.result()
    done.go_on()
    return result
