"""One lock for a stand-in's state and one way to await a change of it; it holds no state itself."""

import asyncio
import threading
from collections.abc import Callable


class Changes:
    """The state is touched by the test's thread and by the stand-in's: always under `lock`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()

    def bind(self, loop: asyncio.AbstractEventLoop | None) -> None:
        with self.lock:
            self._loop = loop
            self._changed = asyncio.Event()

    def announce(self) -> None:
        with self.lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._wake)

    async def until(self, predicate: Callable[[], bool], seconds: float | None = None) -> bool:
        """In the stand-in's loop only; false when the seconds are over first."""
        try:
            async with asyncio.timeout(seconds):
                while not self._holds(predicate):
                    await self._changed.wait()
        except TimeoutError:
            return self._holds(predicate)
        return True

    def _holds(self, predicate: Callable[[], bool]) -> bool:
        with self.lock:
            return predicate()

    def _wake(self) -> None:
        self._changed.set()
        self._changed.clear()
