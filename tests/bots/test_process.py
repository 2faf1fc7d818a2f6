"""One run of the process: what it waits for, and how long."""

import socket
from datetime import datetime

import pytest

from bots.process import open_store
from core.errors import ConfigurationError, StorageError


class Watch:
    """``core.ports.Clock`` that remembers what it was to sleep."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        raise AssertionError("nobody asks for the time")

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def nowhere() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"postgres://ada:hush@127.0.0.1:{probe.getsockname()[1]}/bot"


async def test_a_database_that_is_not_up_yet_is_waited_for_with_growing_pauses() -> None:
    watch = Watch()
    with pytest.raises(StorageError) as caught:
        await open_store(nowhere(), clock=watch)
    assert watch.slept == [1, 2, 4, 8, 15, 15, 15]
    assert "hush" not in str(caught.value)


async def test_a_database_that_comes_up_is_used(sqlite_url: str) -> None:
    store = await open_store(sqlite_url, clock=Watch())
    await store.set_fact("a", "b")
    assert await store.fact("a") == "b"
    await store.close()


async def test_a_wrong_address_is_not_waited_for() -> None:
    watch = Watch()
    with pytest.raises(ConfigurationError, match="DATABASE_URL"):
        await open_store("mysql://db", clock=watch)
    assert watch.slept == []
