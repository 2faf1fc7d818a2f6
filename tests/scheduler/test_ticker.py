"""The clock that wakes the jobs: what it says of those that a stop cuts short."""

import asyncio

import pytest

from scheduler.ticker import Ticker


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
