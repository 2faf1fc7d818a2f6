"""Who of several processes takes a bot's messages, and what comes of that at stops and failures."""

import asyncio
from datetime import datetime
from typing import Any, cast

import pytest

from bots.intakes import LOOK_SECONDS, Intakes
from bots.platforms import Adapter, Health
from core.errors import StorageError
from core.ports import Lease
from core.runtime.holder import Holder
from storage.memory import MemoryStore
from tests.core.runtime.virtual import VirtualClock, in_virtual_time

LEASE = 15.0


class Door:
    """``bots.platforms.Adapter``, as far as intake goes."""

    def __init__(self, name: str, taking: set[str], intake: str = "room 1") -> None:
        self._name = name
        self._taking = taking
        self.intake = intake

    async def start(self) -> None:
        self._taking.add(self._name)

    async def stop(self) -> None:
        self._taking.discard(self._name)

    def health(self) -> Health:
        return Health(ok=self._name in self._taking, detail="as the adapter says")


class Away(MemoryStore):
    """A database that one process cannot reach for a while, or that does not answer it."""

    cut_off = ""
    hangs = False
    slow = ""
    """Who is told only a second later what was stored."""

    async def take_lease(self, name: str, lease: Lease, now: datetime) -> bool:
        if lease.owner == self.cut_off:
            await asyncio.sleep(60 if self.hangs else 0)
            raise StorageError("away")
        taken = await super().take_lease(name, lease, now)
        await asyncio.sleep(1.0 if lease.owner == self.slow else 0)
        return taken


class Town:
    def __init__(self) -> None:
        self.store = Away()
        self.taking: set[str] = set()
        """Names of the processes whose adapters take messages just now."""

    async def starts(self, name: str, *, takes: bool = True, intake: str = "room 1") -> Intakes:
        door = cast("Adapter", Door(name, self.taking, intake))
        holder = Holder(name, LEASE)
        made = Intakes({"room": door}, self.store, VirtualClock(), holder, takes=takes)
        await made.start()
        return made


def detail(intakes: Intakes) -> Any:
    health = intakes.health()["room"]
    return health.ok, health.detail


async def passes(seconds: float) -> None:
    await asyncio.sleep(seconds)


@in_virtual_time
async def test_one_takes_and_the_other_stands_by_in_good_health() -> None:
    town = Town()
    first = await town.starts("first")
    second = await town.starts("second")
    await passes(100)

    assert town.taking == {"first"}
    assert detail(first) == (True, "as the adapter says")
    assert detail(second) == (True, "another process takes its messages; this one stands by")


@in_virtual_time
async def test_who_stops_hands_over_within_a_second() -> None:
    town = Town()
    first = await town.starts("first")
    second = await town.starts("second")
    await passes(7)
    await first.stop()
    assert town.taking == set()
    await passes(LOOK_SECONDS + 0.1)

    assert town.taking == {"second"}
    assert detail(second) == (True, "as the adapter says")


@in_virtual_time
async def test_who_is_told_takes_over_at_once() -> None:
    town = Town()
    first = await town.starts("first")
    second = await town.starts("second")
    hearing = asyncio.create_task(town.store.listen(lambda news: second.nudge()))
    await passes(7.1)
    await first.stop()
    await passes(0.01)

    assert town.taking == {"second"}
    hearing.cancel()


@in_virtual_time
async def test_who_stops_as_it_is_granted_the_lease_keeps_nobody_waiting() -> None:
    town = Town()
    first = await town.starts("first")
    second = await town.starts("second")
    town.store.slow = "second"
    await first.stop()
    await passes(LOOK_SECONDS + 0.2)
    await second.stop()
    await town.starts("third")
    await passes(LOOK_SECONDS + 0.1)

    assert town.taking == {"third"}


@in_virtual_time
async def test_the_lease_of_one_that_died_runs_out() -> None:
    town = Town()
    assert await town.store.take_lease("room 1", Lease("dead", _now(LEASE)), _now(0))
    await town.starts("second")
    await passes(LEASE - 1)
    assert town.taking == set()
    await passes(2)

    assert town.taking == {"second"}


@pytest.mark.parametrize("hangs", [False, True])
@in_virtual_time
async def test_who_cannot_renew_stops_before_another_may_begin(hangs: bool) -> None:
    town = Town()
    town.store.hangs = hangs
    first = await town.starts("first")
    second = await town.starts("second")
    await passes(7)
    town.store.cut_off = "first"
    for _ in range(300):
        await passes(0.1)
        assert len(town.taking) < 2, "two that poll with one token end each other's polls"

    assert town.taking == {"second"}
    town.store.cut_off = ""
    await passes(60)
    await second.stop()
    await passes(1)
    assert town.taking == {"first"}
    await first.stop()


@in_virtual_time
async def test_who_wakes_after_its_lease_stops_at_once() -> None:
    town = Town()
    first = await town.starts("first")
    await passes(1)
    await town.store.release("room 1", "first")
    assert await town.store.take_lease("room 1", Lease("thief", _now(1000)), _now(2))
    await passes(LEASE / 3 + 0.1)

    assert town.taking == set()
    assert detail(first)[0], "it stands by"


@in_virtual_time
async def test_webhooks_are_taken_by_any_number() -> None:
    town = Town()
    await town.starts("first", intake="")
    await town.starts("second", intake="")
    await passes(1)

    assert town.taking == {"first", "second"}


@in_virtual_time
async def test_a_worker_takes_none_and_is_well() -> None:
    town = Town()
    worker = await town.starts("worker", takes=False)
    await passes(30)

    assert town.taking == set()
    assert detail(worker) == (True, "this process takes no messages, and only sends")


def _now(ahead: float) -> datetime:
    clock = VirtualClock()
    return datetime.fromtimestamp(clock.now().timestamp() + ahead, clock.now().tzinfo)
