"""Says whose turn it is to be read; it reads nothing itself."""

import asyncio
from collections.abc import Callable

from core.ports import Clock

Rank = tuple[int, int, int]
"""The lowest is first."""


class Turns:
    """Each name has one turn, and whoever took it may put it in again."""

    def __init__(self, clock: Clock, rank: Callable[[str], Rank]) -> None:
        self._clock = clock
        self._rank = rank
        self._queue = asyncio.PriorityQueue[tuple[Rank, str]]()
        self._waiting: set[str] = set()
        self._pauses: set[asyncio.Task[None]] = set()

    def put(self, name: str) -> None:
        self._waiting.add(name)
        self._queue.put_nowait((self._rank(name), name))

    def put_later(self, name: str, seconds: float) -> None:
        task = asyncio.create_task(self._put_later(name, seconds))
        self._pauses.add(task)
        task.add_done_callback(self._pauses.discard)

    def hurry(self, name: str) -> None:
        """When its rank has changed; what is being read, or pauses, comes no sooner."""
        if name in self._waiting:
            self.put(name)

    async def take(self) -> str:
        while True:
            _, name = await self._queue.get()
            if name in self._waiting:
                self._waiting.remove(name)
                return name

    async def close(self) -> None:
        for task in self._pauses:
            task.cancel()
        await asyncio.gather(*self._pauses, return_exceptions=True)

    async def _put_later(self, name: str, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self.put(name)
