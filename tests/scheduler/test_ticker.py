"""The clock that wakes the jobs: what it says of those that a stop cuts short."""

import asyncio
import datetime as dt

import apscheduler.schedulers.base
import pytest

import scheduler.ticker
from scheduler.ticker import Ticker


class Shifted(dt.datetime):
    """The machine's clock, set to another time."""

    shift = dt.timedelta()

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # pyright: ignore[reportIncompatibleMethodOverride]
        return dt.datetime.now(tz) + cls.shift


@pytest.mark.parametrize("years", [-1, 50])
async def test_jobs_go_on_when_the_clock_is_set_to_another_time(
    monkeypatch: pytest.MonkeyPatch, years: int
) -> None:
    runs, ran = 0, asyncio.Event()

    async def job() -> None:
        nonlocal runs
        runs += 1
        ran.set()

    monkeypatch.setattr(apscheduler.schedulers.base, "datetime", Shifted)
    monkeypatch.setattr(scheduler.ticker, "datetime", Shifted)
    monkeypatch.setattr(scheduler.ticker, "WATCH_SECONDS", 0.05)
    ticker = Ticker(((job, 0.1),))
    ticker.start()
    async with asyncio.timeout(20):
        await ran.wait()
        monkeypatch.setattr(Shifted, "shift", dt.timedelta(days=365 * years))
        before = runs
        while runs < before + 3:
            ran.clear()
            await ran.wait()
    ticker.stop()


async def test_a_job_that_a_stop_cuts_short_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def long_job() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    ticker = Ticker(((long_job, 0.01),))
    ticker.start()
    async with asyncio.timeout(10):
        await begun.wait()
        ticker.stop()
        await ended.wait()
    await asyncio.sleep(0)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_job_that_fails_is_told(caplog: pytest.LogCaptureFixture) -> None:
    begun = asyncio.Event()

    async def bad_job() -> None:
        begun.set()
        raise ValueError("a bug")

    ticker = Ticker(((bad_job, 0.01),))
    ticker.start()
    async with asyncio.timeout(10):
        await begun.wait()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    ticker.stop()
    assert "a bug" in caplog.text
