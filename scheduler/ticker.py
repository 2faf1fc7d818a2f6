"""APScheduler as the clock that wakes the jobs; it keeps no due time of ours."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.triggers.base import BaseTrigger  # pyright: ignore[reportMissingTypeStubs]

Job = Callable[[], Awaitable[None]]

WATCH_SECONDS = 1.0
"""Between looks at whether the clock was set back."""


class Ticker:
    """Runs each job every so many seconds, one at a time, late ones once."""

    def __init__(self, jobs: tuple[tuple[Job, float], ...]) -> None:
        self._scheduler: Any = AsyncIOScheduler(timezone=UTC)
        self._watch: asyncio.Task[None] | None = None
        for job, seconds in jobs:
            self._scheduler.add_job(
                _until_stopped,
                _Every(seconds),
                args=(job,),
                misfire_grace_time=None,
                coalesce=True,
                max_instances=1,
            )

    def start(self) -> None:
        self._scheduler.start()
        self._watch = asyncio.create_task(self._watch_the_clock())

    def stop(self) -> None:
        """A job that is running is cancelled; it will be done again after the next start."""
        if self._watch is not None:
            self._watch.cancel()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    async def _watch_the_clock(self) -> None:
        """The library goes by the time of day: set back, it would run nothing for as long."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now = datetime.now(UTC)
            for entry in self._scheduler.get_jobs():
                if entry.trigger.is_beyond(entry.next_run_time, now):
                    entry.modify(next_run_time=now)


class _Every(BaseTrigger):
    """Counts from now and not from the last run: a clock set ahead by years makes one late run, and
    not one for each second of them."""

    def __init__(self, seconds: float) -> None:
        self._span = timedelta(seconds=seconds)

    def get_next_fire_time(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, previous_fire_time: datetime | None, now: datetime
    ) -> datetime:
        return now + self._span

    def is_beyond(self, time: datetime, now: datetime) -> bool:
        """No run is ever put so far ahead."""
        return time - now > self._span


async def _until_stopped(job: Job) -> None:
    """The library takes a job that was cancelled by a stop for one that failed."""
    with suppress(asyncio.CancelledError):
        await job()
