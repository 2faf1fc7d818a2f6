"""Work that a cancellation does not tear."""

import asyncio

import pytest

from core.errors import StorageError
from core.runtime.whole import ended, whole
from tests.core.runtime.virtual import in_virtual_time


async def work(seconds: float, done: list[str]) -> str:
    await asyncio.sleep(seconds)
    done.append("done")
    return "result"


async def fails() -> None:
    await asyncio.sleep(1)
    raise StorageError("disk full")


@in_virtual_time
async def test_its_result_is_that_of_the_work() -> None:
    assert await whole(work(1, [])) == "result"
    with pytest.raises(StorageError):
        await whole(fails())


@in_virtual_time
async def test_a_cancellation_comes_after_its_end_however_often_it_is_asked_for() -> None:
    done: list[str] = []
    task = asyncio.create_task(whole(work(3, done)))
    for _ in range(2):
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
    await asyncio.wait((task,))
    assert task.cancelled()
    assert done == ["done"]


@in_virtual_time
async def test_what_was_cancelled_and_failed_was_cancelled() -> None:
    task = asyncio.create_task(whole(fails()))
    await asyncio.sleep(0.5)
    task.cancel()
    await asyncio.wait((task,))
    assert task.cancelled()


@in_virtual_time
async def test_who_has_to_care_for_the_result_gets_it_before_it_goes() -> None:
    seen: list[str] = []

    async def careful() -> None:
        done = await ended(work(2, []))
        if done.cancelled:
            seen.append(done.result())
        done.go_on()
        seen.append("went on")

    task = asyncio.create_task(careful())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait((task,))
    assert task.cancelled()
    assert seen == ["result"]


@in_virtual_time
async def test_a_time_limit_around_it_is_told_when_the_work_has_ended() -> None:
    done: list[str] = []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await whole(work(2, done))
    assert done == ["done"]
