"""Whatever is cancelled in the middle of a write, on a slow way to a real PostgreSQL: what is to be
done is in somebody's hands, or free for the next at once."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from core.domain.policy import Policy
from core.ports import Paces
from core.runtime.delivery import Delivery
from core.runtime.holder import Holder
from core.runtime.limiter import Limiter
from core.runtime.sessions import Sessions
from storage.store import SqlStore
from tests.bots.life import FREE, KEY, HandClock, Room, until
from tests.bots.stored import StoredHouse
from tests.contract.values import commit, lease, letter, said
from tests.postgres import PostgresServer
from tests.wire import wire

pytestmark = pytest.mark.postgres

LATE = 0.004
"""Seconds of each answer: a transaction takes several."""
STEP = 0.003


@asynccontextmanager
async def slow_and_near(
    url: str, server: PostgresServer
) -> AsyncGenerator[tuple[SqlStore, SqlStore]]:
    """The store of who is cancelled, and that of another process."""
    near = await SqlStore.open(url)
    async with wire(server.port) as between:
        there = url.replace(f":{server.port}/", f":{between.port}/")
        slow = await SqlStore.open(f"{there}?sslmode=disable")
        await slow.fact("so that there is a connection")
        between.delay = LATE
        yield slow, near
        between.delay = 0.0
        await slow.close()
    await near.close()


async def cut_short(work: Coroutine[Any, Any, object], seconds: float) -> bool:
    """Whether there was something to cut short."""
    task = asyncio.create_task(work)
    await asyncio.sleep(seconds)
    cut = not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return cut


async def test_a_claim_that_is_cut_short_leaves_its_row_to_the_next(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    clock, room = HandClock(), Room("telegram")
    limiter = Limiter(clock, {"telegram": Paces(chat=FREE, bot=FREE)})
    async with slow_and_near(postgres_url, postgres_server) as (slow, near):
        await near.commit(commit(KEY, 0, said(), outbox=(letter("m"),)))
        number = 0
        for number in count():
            delivery = Delivery(slow, {"telegram": room}, limiter, clock, Holder("slow"))
            if not await cut_short(delivery.sweep(), number * STEP):
                await delivery.drain(0)
                break
            (row,) = await near.claim(clock.now(), lease("near"))
            await near.retry(row, clock.now(), "for the next round")
    assert number > 5


async def test_a_turn_whose_taking_is_cut_short_is_ours_or_nobodys(
    postgres_url: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    house = StoredHouse(postgres_url, tmp_path)
    house.script.hold()
    async with house.opens():
        await house.room.hears("think hard")
        await until(lambda: bool(house.script.requests))
    ours = 0
    async with slow_and_near(postgres_url, postgres_server) as (slow, near):
        for number in count():
            channels = {"room": house.room}
            sessions = Sessions(slow, channels, Policy(), house.clock, Holder(f"p{number}"))
            cut = await cut_short(sessions.take(KEY), number * STEP)
            held = KEY in sessions.held
            assert (KEY in await near.abandoned(house.clock.now())) is not held
            if not cut:
                break
            ours += held
            await sessions.let_go(KEY)
    assert ours > 2
