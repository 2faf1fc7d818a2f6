"""APScheduler as the clock that wakes the jobs; it keeps no due time of ours."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC

from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]

Job = Callable[[], Awaitable[None]]


class Ticker:
    """Runs each job every so many seconds, one at a time, late ones once."""

    def __init__(self, jobs: tuple[tuple[Job, float], ...]) -> None:
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        for job, seconds in jobs:
            self._scheduler.add_job(  # pyright: ignore[reportUnknownMemberType]
                _until_stopped,
                "interval",
                args=(job,),
                seconds=seconds,
                misfire_grace_time=None,
                coalesce=True,
                max_instances=1,
            )

    def start(self) -> None:
        self._scheduler.start()

    def stop(self) -> None:
        """A job that is running is cancelled; it will be done again after the next start."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)


async def _until_stopped(job: Job) -> None:
    """The library takes a job that was cancelled by a stop for one that failed."""
    with suppress(asyncio.CancelledError):
        await job()
