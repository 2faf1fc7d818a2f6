"""Work that blocks, in a thread that nothing has to wait for; it cannot end such a thread."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Protocol, TypeVar

T = TypeVar("T")


class Blocking(Protocol):
    async def __call__(self, work: Callable[[], T], seconds: float) -> T: ...


async def in_thread(work: Callable[[], T], seconds: float) -> T:
    """Raises what ``work`` raises, and TimeoutError; then the thread is left to itself, and does
    not hold up the end of the process as one of asyncio's would."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: None if answer.done() else settle())

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 (the top of a thread)
            failure = error
            tell(lambda: answer.set_exception(failure))
        else:
            tell(lambda: answer.set_result(result))

    Thread(target=run, daemon=True).start()
    async with asyncio.timeout(seconds):
        return await answer
