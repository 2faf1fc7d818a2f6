"""What every store promises to processes that share it: who takes what, and being told of it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest

from core.errors import ConflictError, LeaseLostError
from core.ports import Lease, Notification, Store
from storage.memory import MemoryStore
from storage.store import SqlStore
from tests.contract.values import KEY, OTHER, at, commit, lease, letter, said

BOT = "telegram 1234"


def held(owner: str = "here", until: float = 30) -> Lease:
    return Lease(owner, at(until), held=True)


async def test_a_turn_that_nobody_took_is_told_from_one_that_was_left(store: Store) -> None:
    await store.commit(commit("a", 0, said(), open_turn=True))
    await store.commit(commit("b", 0, said(), open_turn=True, lease=lease("here", 20)))
    await store.commit(commit("c", 0, said()))
    assert await store.abandoned(at(25)) == ("a", "b")
    assert await store.untaken(("a", "b", "c", "d")) == {"a"}
    await store.commit(commit("a", 1, said(), open_turn=True, lease=lease("here", 60)))
    assert await store.untaken(("a", "b", "c", "d")) == frozenset()


async def test_a_lease_that_is_let_go_is_nobodys(store: Store) -> None:
    await store.commit(commit(KEY, 0, said(), open_turn=True, lease=lease("here", 30)))
    gone = Lease("here", at(5))
    await store.commit(commit(KEY, 1, open_turn=True, lease=gone, at=at(5)))
    assert await store.abandoned(at(5)) == (KEY,)
    assert await store.untaken((KEY,)) == {KEY}
    assert await store.renew((KEY,), lease("here", 60)) == {}
    await store.commit(commit(KEY, 1, open_turn=True, lease=lease("there", 30), at=at(6)))


async def test_who_lost_a_lease_stores_nothing_of_what_it_did(store: Store) -> None:
    await store.commit(commit(KEY, 0, said(), open_turn=True, lease=lease("here", 10)))
    await store.commit(commit(KEY, 1, open_turn=True, lease=lease("there", 20), at=at(11)))
    with pytest.raises(LeaseLostError):
        await store.commit(commit(KEY, 1, said(), open_turn=True, lease=held(), at=at(12)))
    # Also when the other one's is over again, and when it let go.
    with pytest.raises(LeaseLostError):
        await store.commit(commit(KEY, 1, said(), open_turn=True, lease=held(until=90), at=at(50)))
    await store.commit(commit(KEY, 1, open_turn=True, lease=Lease("there", at(51)), at=at(51)))
    with pytest.raises(LeaseLostError):
        await store.commit(commit(KEY, 1, said(), open_turn=True, lease=held(until=90), at=at(52)))
    assert len(await store.events(KEY)) == 1


async def test_a_held_lease_that_nobody_took_meanwhile_goes_on(store: Store) -> None:
    await store.commit(commit(KEY, 0, said(), open_turn=True, lease=lease("here", 10)))
    late = commit(KEY, 1, said(), open_turn=True, lease=held(until=90), at=at(60))
    await store.commit(late)
    with pytest.raises(ConflictError):
        await store.commit(late)


async def test_one_at_a_time_has_a_named_lease(store: Store) -> None:
    assert await store.take_lease(BOT, lease("here", 15), at(0))
    assert not await store.take_lease(BOT, lease("there", 16), at(1))
    assert await store.take_lease("slack 1", lease("there", 16), at(1))
    assert await store.take_lease(BOT, lease("here", 30), at(10))
    assert not await store.take_lease(BOT, lease("there", 40), at(29.9))
    assert await store.take_lease(BOT, lease("there", 45), at(30))
    assert not await store.take_lease(BOT, lease("here", 46), at(31))


async def test_a_named_lease_is_let_go_by_its_owner_alone(store: Store) -> None:
    assert await store.take_lease(BOT, lease("here", 15), at(0))
    await store.release(BOT, "there")
    assert not await store.take_lease(BOT, lease("there", 16), at(1))
    await store.release(BOT, "here")
    assert await store.take_lease(BOT, lease("there", 16), at(1))
    await store.release("never taken", "here")


@asynccontextmanager
async def two(store: Store, url: str) -> AsyncGenerator[tuple[Store, list[Notification]]]:
    """Another process on the same database, and what it hears."""
    other: Store = store if isinstance(store, MemoryStore) else await SqlStore.open(url)
    heard: list[Notification] = []
    task = asyncio.create_task(other.listen(heard.append))
    try:
        await until(lambda: Notification("all") in heard)
        heard.clear()
        yield other, heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if other is not store:
            await other.close()


async def until(there: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not there():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture
def shared(store: Store, store_url: str) -> str:
    if store_url.startswith("sqlite"):
        pytest.skip("one process at a time has a SQLite file open")
    return store_url


async def test_others_are_told_of_a_turn_that_nobody_runs(store: Store, shared: str) -> None:
    async with two(store, shared) as (_, heard):
        await store.commit(commit(KEY, 0, said(), open_turn=True, lease=lease("here", 30)))
        await store.commit(commit(OTHER, 0, said(), open_turn=True))
        await until(lambda: bool(heard))
        assert heard == [Notification("turn")]
        heard.clear()
        await store.commit(commit(KEY, 1, open_turn=True, lease=Lease("here", at(0))))
        await until(lambda: bool(heard))
        assert heard == [Notification("turn")]


async def test_who_runs_a_session_is_told_that_it_went_on(store: Store, shared: str) -> None:
    async with two(store, shared) as (_, heard):
        await store.commit(commit(KEY, 0, said(), open_turn=True, lease=lease("there", 30)))
        await store.commit(commit(KEY, 1, said()))
        await until(lambda: bool(heard))
        assert heard == [Notification("session", KEY)]


async def test_who_waits_for_a_named_lease_is_told(store: Store, shared: str) -> None:
    async with two(store, shared) as (other, heard):
        await store.take_lease(BOT, lease("here", 15), at(0))
        await store.release(BOT, "there")
        await store.release(BOT, "here")
        await until(lambda: bool(heard))
        assert heard == [Notification("lease", BOT)]
        assert await other.take_lease(BOT, lease("there", 15), at(0))


async def test_a_preview_of_a_turn_that_another_took_is_not_begun(store: Store) -> None:
    preview = letter("p", kind="preview")
    assert await store.open_preview(preview, held(), at()) == ("lost", None)
    await store.commit(commit(KEY, 0, said(), open_turn=True, lease=lease("here", 10)))
    state, _ = await store.open_preview(preview, held(), at())
    assert state == "opened"
    await store.commit(commit(KEY, 1, open_turn=True, lease=lease("there", 20), at=at(11)))
    assert await store.open_preview(preview, held(until=30), at(12)) == ("lost", None)
    later = letter("q", kind="preview")
    assert await store.open_preview(later, held(until=30), at(12)) == ("lost", None)
    await store.commit(commit(KEY, 1, said(), lease=lease("there", 20), at=at(13)))
    assert await store.open_preview(later, held("there", 40), at(14)) == ("lost", None)
