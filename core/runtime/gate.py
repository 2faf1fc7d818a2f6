"""Lets a suspect turn run while no other does, so that a killer is told from its victims."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

PATIENCE = 20.0
"""Seconds after which nobody waits any longer for another's running step to end."""


class Gate:
    """Each step of a turn passes here. A suspect's step begins when the running ones have ended,
    and while it runs no other begins; for ``patience`` seconds at most."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._running = 0
        self._suspect = False
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def step(self, *, alone: bool) -> AsyncGenerator[None]:
        async with self._alone() if alone else self._together():
            yield

    @asynccontextmanager
    async def _together(self) -> AsyncGenerator[None]:
        async with self._changed:
            await self._wait(lambda: not self._suspect)
            self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            await self._tell()

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        async with self._changed:
            await self._wait(lambda: not self._running and not self._suspect)
            await self._changed.wait_for(lambda: not self._suspect)
            self._suspect = True
        try:
            yield
        finally:
            self._suspect = False
            await self._tell()

    async def _wait(self, free: Callable[[], bool]) -> None:
        """Not longer than ``patience``: nobody's answer hangs on another's slow tool for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._changed.wait_for(free)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()
