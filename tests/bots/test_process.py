"""One run of the process: what it waits for, how long, and what it says and hears meanwhile."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import httpx
import pytest

from bots.ground import Ground
from bots.process import Wait, run_on, when_up
from bots.web import bind
from core.errors import ConfigurationError, StorageError
from storage.store import SqlStore


class Watch:
    """``core.ports.Clock`` that remembers what it was to sleep, and stops the test after so many
    sleeps."""

    def __init__(self, most: int = 100) -> None:
        self.slept: list[float] = []
        self._most = most

    def now(self) -> datetime:
        raise AssertionError("nobody asks for the time")

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) >= self._most:
            raise EnoughError


class EnoughError(Exception):
    pass


def nowhere() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"postgres://ada:hush@127.0.0.1:{probe.getsockname()[1]}/bot"


def opening(url: str) -> Callable[[], Awaitable[SqlStore]]:
    return lambda: SqlStore.open(url)


async def test_a_database_that_is_not_up_yet_is_waited_for_with_growing_pauses() -> None:
    watch = Watch()
    with pytest.raises(StorageError) as caught:
        await when_up(opening(nowhere()), clock=watch)
    assert watch.slept == [1, 2, 4, 8, 15, 15, 15]
    assert "hush" not in str(caught.value)


async def test_a_service_waits_for_its_database_for_ever() -> None:
    watch = Watch(most=50)
    with pytest.raises(EnoughError):
        await when_up(opening(nowhere()), tries=None, clock=watch)
    assert set(watch.slept[4:]) == {15}


async def test_what_is_waited_for_is_said() -> None:
    wait = Wait()
    assert await wait.readiness() == (False, {"state": "starting", "database": "not up yet"})
    with pytest.raises(EnoughError):
        await when_up(opening(nowhere()), tries=None, clock=Watch(most=1), wait=wait)
    ready, detail = await wait.readiness()
    assert not ready
    assert detail["database"].startswith("not up yet: ")
    assert "hush" not in detail["database"]


async def test_a_database_that_comes_up_is_used(sqlite_url: str) -> None:
    store = await when_up(opening(sqlite_url), clock=Watch())
    await store.set_fact("a", "b")
    assert await store.fact("a") == "b"
    await store.close()


async def test_a_wrong_address_is_not_waited_for() -> None:
    watch = Watch()
    with pytest.raises(ConfigurationError, match="DATABASE_URL"):
        await when_up(opening("mysql://db"), clock=watch)
    assert watch.slept == []


@asynccontextmanager
async def waiting_service() -> AsyncGenerator[tuple[asyncio.Task[None], httpx.AsyncClient]]:
    """One whose database never comes up."""

    def no_ground(store: SqlStore) -> Ground:
        raise AssertionError("there is no database")

    with bind(0) as listener:
        task = asyncio.create_task(run_on(opening(nowhere()), no_ground, listener))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            yield task, client
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_health_is_served_before_the_database_is_up() -> None:
    async with waiting_service() as (_, client):
        alive, ready = await client.get("/healthz"), await client.get("/readyz")
        hook = await client.post("/telegram/secret", json={})
    assert alive.status_code == 200
    assert ready.status_code == 503
    assert "not up yet" in ready.json()["database"]
    assert hook.status_code == 503


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_while_it_waits_for_its_database(number: signal.Signals) -> None:
    async with waiting_service() as (task, client):
        await client.get("/healthz")
        os.kill(os.getpid(), number)
        async with asyncio.timeout(10):
            await task
