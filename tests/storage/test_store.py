"""A damaged database is noticed, named and never read as if it were whole."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from core.errors import BrokenDataError
from storage.engine import Database
from storage.migrate import bring_up, open_database
from storage.store import SqlStore
from storage.tables import events, outbox, snapshots
from tests.contract.values import (
    KEY,
    at,
    commit,
    lease,
    letter,
    loaded,
    log,
    opened,
    put_aside,
    said,
    state,
)

WHOLE = log(1, *(said(str(number)) for number in range(5)))


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await open_database(database_url)
    await bring_up(database)
    yield database
    await database.close()


@pytest.fixture
async def store(database: Database) -> SqlStore:
    store = SqlStore(database)
    await store.commit(commit("another", 0, said()))
    await store.commit(commit(KEY, 0, *(one.event for one in WHOLE), snapshot=state(KEY, 2)))
    return store


async def _damage(database: Database, statement: sa.Executable) -> None:
    await database.write(lambda connection: connection.execute(statement).close())


async def test_deleting_every_snapshot_loses_nothing(database: Database, store: SqlStore) -> None:
    assert await loaded(store, KEY) == (state(KEY, 2), WHOLE[2:])
    await _damage(database, sa.delete(snapshots))
    assert await loaded(store, KEY) == (None, WHOLE)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"version": 2}, id="a newer version's"),
        pytest.param({"data": '{"key": 7}'}, id="unreadable"),
        pytest.param({"seq": 3}, id="of another place"),
    ],
)
async def test_a_snapshot_that_cannot_be_used_is_passed_over(
    database: Database, store: SqlStore, change: dict[str, Any]
) -> None:
    await _damage(database, sa.update(snapshots).values(change))
    assert await loaded(store, KEY) == (None, WHOLE)


@pytest.mark.parametrize("seq", [3, 4, 5])
async def test_a_missing_event_is_named(database: Database, store: SqlStore, seq: int) -> None:
    await _damage(database, sa.delete(events).where(events.c.seq == seq))
    with pytest.raises(BrokenDataError, match=f"{KEY}@{seq}"):
        await store.load(KEY)
    with pytest.raises(BrokenDataError, match=f"{KEY}@{seq}"):
        await store.events(KEY)
    with pytest.raises(BrokenDataError, match=f"{KEY}@{seq}"):
        await store.bodies(KEY, (1, seq))
    assert await store.events(KEY, 1, 2) == WHOLE[:2]
    assert await store.events("another") == log(1, said())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"version": 9}, id="a newer version's"),
        pytest.param({"type": "Unheard"}, id="an unknown type"),
        pytest.param({"data": "{}"}, id="nothing in it"),
        pytest.param({"data": '{"type": "No"}'}, id="another type in it"),
    ],
)
async def test_an_event_that_cannot_be_read_is_named(
    database: Database, store: SqlStore, change: dict[str, Any]
) -> None:
    await _damage(database, sa.update(events).where(events.c.seq == 4).values(change))
    with pytest.raises(BrokenDataError, match=f"{KEY}@4"):
        await store.load(KEY)
    kept_as = await put_aside(store, KEY, at())
    assert await loaded(store, KEY) == (None, ())
    assert await store.events(kept_as, 1, 3) == WHOLE[:3]


async def test_a_run_can_be_found_by_its_id(database: Database, store: SqlStore) -> None:
    await store.commit(commit("third", 0, opened("20260505_143022_a1b2c3d4"), said()))
    found = await database.read(
        lambda connection: connection.exec_driver_sql(
            "SELECT streams.key, events.seq FROM events JOIN streams ON streams.id = events.stream"
            " WHERE events.session_id = '20260505_143022_a1b2c3d4'"
        ).all()
    )
    assert [tuple(row) for row in found] == [("third", 1)]


async def test_a_promise_that_cannot_be_read_holds_up_nobody(tmp_path: Path) -> None:
    store = await SqlStore.open(f"sqlite:///{tmp_path}/stillhere.db")
    await store.commit(commit(KEY, 0, said(), outbox=(letter("a"), letter("b"))))
    spoil = sa.update(outbox).where(outbox.c.id == "a").values(body='{"no": "message"}')
    await store._database.write(lambda link: link.execute(spoil))  # pyright: ignore[reportPrivateUsage]
    assert await store.claim(at(), lease()) == ()
    assert [one.message.id for one in await store.claim(at(), lease())] == ["b"]
    assert (await store.backlog())["failed"] == 1
    await store.close()
