"""Group commit: few transactions for many, no waiting for one, and nobody fails for another."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from core.errors import StorageError, UnstorableError
from core.ports import Claimed, Hear
from storage.engine import Database, DialectName
from storage.migrate import bring_up, open_database
from storage.store import SqlStore
from storage.tables import facts
from storage.writer import GROUP_SIZE, Writer
from tests.contract.values import KEY, at, commit, lease, letter, log, said, update

T = TypeVar("T")


class Counted:
    """A database that counts its transactions, and fails the next one after it is stored."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.transactions = 0
        self.statements: list[str] = []
        self.breaks = False

    async def listen(self, hear: Hear, sender: str) -> None:
        await self._database.listen(hear, sender)

    @property
    def dialect(self) -> DialectName:
        return self._database.dialect

    @property
    def exclusive(self) -> bool:
        return self._database.exclusive

    @property
    def notes(self) -> tuple[str, ...]:
        return self._database.notes

    @property
    def folder(self) -> Path | None:
        return self._database.folder

    async def alter(self, work: Callable[[sa.Connection], T]) -> T:
        return await self._database.alter(work)

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        self.transactions += 1
        self.statements.append("BEGIN")
        result = await self._database.write(lambda connection: self._noted(connection, work))
        if self.breaks:
            self.breaks = False
            raise StorageError("the answer was lost")
        return result

    def _noted(self, connection: sa.Connection, work: Callable[[sa.Connection], T]) -> T:
        def note(*args: object) -> None:
            self.statements.append(str(args[2]))

        event.listen(connection, "before_cursor_execute", note)
        try:
            return work(connection)
        finally:
            event.remove(connection, "before_cursor_execute", note)

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        return await self._database.read(work)

    async def backup(self, tag: str) -> Path | None:
        return await self._database.backup(tag)

    async def close(self) -> None:
        await self._database.close()


@pytest.fixture
async def counted(database_url: str) -> AsyncIterator[Counted]:
    database = await open_database(database_url)
    await bring_up(database)
    counted = Counted(database)
    yield counted
    await counted.close()


@pytest.fixture
def store(counted: Counted) -> SqlStore:
    return SqlStore(counted)


async def test_what_gathers_goes_together(counted: Counted, store: SqlStore) -> None:
    await asyncio.gather(*(store.commit(commit(f"k{n}", 0, said())) for n in range(100)))
    assert counted.transactions == 1
    assert len(await store.streams()) == 100


async def test_what_comes_during_a_transaction_goes_into_the_next(
    counted: Counted, store: SqlStore
) -> None:
    async def steps(key: str) -> None:
        for seq in range(10):
            await store.commit(commit(key, seq, said()))

    await asyncio.gather(*(steps(f"k{n}") for n in range(50)))
    assert 10 <= counted.transactions <= 20
    assert {info.seq for info in await store.streams()} == {10}


async def test_nothing_comes_after_the_counts_that_others_wait_for(
    counted: Counted, store: SqlStore
) -> None:
    """Else one could hold them and wait for a session of who waits for them."""
    await asyncio.gather(
        store.commit(commit(KEY, 0, said(), inbox=update())),
        store.renew((KEY,), lease()),
        store.sent(
            Claimed(message=letter("a"), position=1, attempts=1, created_at=at()), "1", at()
        ),
    )
    verbs = [statement.split()[:3] for statement in counted.statements]
    assert counted.transactions == 1
    assert verbs[-1] == ["INSERT", "INTO", "ledger"]
    assert ["UPDATE", "streams", "SET"] in verbs


async def test_what_sets_a_session_aside_is_alone_and_counts_last(
    counted: Counted, store: SqlStore
) -> None:
    """Else it would hold counts and wait for a session of who waits for them."""
    stream = await store.commit(commit(KEY, 0, said(), owed=1, inbox=update(1)))
    counted.statements.clear()
    await asyncio.gather(
        store.commit(commit("k2", 0, said(), inbox=update(2))),
        store.set_aside(KEY, stream, at(), commit(KEY, 0, said(), inbox=update(3))),
        store.commit(commit("k4", 0, said(), inbox=update(4))),
    )
    _, *transactions = "; ".join(counted.statements).split("BEGIN; ")
    ends = [("INSERT INTO ledger" in one, one.rpartition("; INSERT")[2]) for one in transactions]
    assert [(counts, end.split()[:2]) for counts, end in ends] == [(True, ["INTO", "ledger"])] * 3
    assert [one.count("INSERT INTO ledger") for one in transactions] == [1, 1, 1]


async def test_what_a_session_owes_is_written_when_it_changes(
    counted: Counted, store: SqlStore
) -> None:
    await store.commit(commit(KEY, 0, said(), owed=1, inbox=update()))
    for seq, owed in ((1, 1), (2, 0), (3, 0)):
        counted.statements.clear()
        await store.commit(commit(KEY, seq, said(), owed=owed))
        moves = [one for one in counted.statements if one.startswith("UPDATE streams")]
        assert [("owed=" in one) for one in moves] == [seq == 2]


async def test_a_group_has_a_limit(counted: Counted, store: SqlStore) -> None:
    await asyncio.gather(*(store.commit(commit(f"k{n}", 0, said())) for n in range(GROUP_SIZE + 1)))
    assert counted.transactions == 2


async def test_what_the_database_refuses_fails_its_own_caller_only(store: SqlStore) -> None:
    await store.commit(commit(KEY, 0, said(), outbox=(letter("taken"),)))
    results = await asyncio.gather(
        *(
            store.commit(commit(f"k{n}", 0, said(), outbox=(letter(name),)))
            for n, name in enumerate(("a", "b", "taken", "c"))
        ),
        return_exceptions=True,
    )
    assert isinstance(results[2], UnstorableError)
    assert all(isinstance(result, int) for n, result in enumerate(results) if n != 2)
    assert {info.key for info in await store.streams()} == {KEY, "k0", "k1", "k3"}


async def test_what_cannot_be_said_for_many_at_once_is_said_one_by_one(counted: Counted) -> None:
    """A statement that never reaches the database stored nothing, as one that is refused."""
    writer = Writer(counted)
    one_of = facts.c.value.in_(("a", "b"))
    facts_of = sa.update(facts).where(facts.c.name == sa.bindparam("of"), one_of)

    def clear(connection: sa.Connection, names: Sequence[str]) -> list[None]:
        connection.execute(facts_of.values(value=""), [{"of": name} for name in names])
        return [None] * len(names)

    await asyncio.gather(*(writer.do(clear, name) for name in ("one", "two", "three")))


async def test_a_transaction_that_may_be_there_is_not_tried_again(
    counted: Counted, store: SqlStore
) -> None:
    counted.breaks = True
    results = await asyncio.gather(
        *(store.commit(commit(f"k{n}", 0, said())) for n in range(3)), return_exceptions=True
    )
    assert [type(result) for result in results] == [StorageError] * 3
    assert counted.transactions == 1
    await store.commit(commit("k0", 1, said("looked and went on")))
    assert await store.events("k0") == log(1, said(), said("looked and went on"))


async def test_what_was_asked_before_the_end_is_still_written(
    database_url: str, counted: Counted, store: SqlStore
) -> None:
    tasks = [asyncio.create_task(store.commit(commit(f"k{n}", 0, said()))) for n in range(20)]
    await asyncio.sleep(0)
    await store.close()
    assert len(set(await asyncio.gather(*tasks))) == 20
    again = await SqlStore.open(database_url)
    assert len(await again.streams()) == 20
    await again.close()
