"""The work that a step or a poll costs does not grow with what is over; counted, not timed."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import sqlalchemy as sa

from core.ports import Claimed, Commit, Timer
from storage import deliveries, ledger, reads, spending
from storage.codec import Codec
from storage.commits import Commits
from storage.engine import Database
from storage.migrate import bring_up, open_database
from storage.rows import prepare
from storage.tables import outbox
from storage.takeover import end_leases
from tests.contract.values import KEY, at, commit, lease, letter, said, state, update

Work = Callable[[sa.Connection], Any]
CODEC = Codec()
COMMITS = Commits("sqlite")
SHORT, LONG = 60, 3_000


@pytest.fixture
async def database(sqlite_url: str) -> AsyncIterator[Database]:
    database = await open_database(sqlite_url)
    await bring_up(database)
    yield database
    await database.close()


def _step(seq: int) -> Commit:
    timer = Timer(id=f"{KEY}#idle", key=KEY, kind="idle", due=at(60 + seq))
    parts: dict[str, Any] = {"inbox": update(seq), "outbox": (letter(f"{KEY}@{seq}"),)}
    snapshot = state(KEY, seq + 1)
    return commit(KEY, seq, said(), timers=(timer,), snapshot=snapshot, **parts)


def _other(number: int) -> Commit:
    return commit(f"k{number}", 0, said(), inbox=update(number, "slack"))


def _apply(connection: sa.Connection, *commits: Commit) -> None:
    work = [prepare(one, CODEC) for one in commits]
    assert all(isinstance(one, int) for one in COMMITS.apply(connection, work))


def _history(connection: sa.Connection, first: int, last: int) -> None:
    """So many steps of one session, all sent, and as many other sessions, all at rest."""
    steps = range(first, last)
    _apply(connection, *map(_step, steps), *map(_other, steps))
    places = connection.execute(sa.select(outbox.c.position).where(outbox.c.state != "sent"))
    claims = [
        Claimed(message=letter("a"), position=one, attempts=0, created_at=at())
        for one in places.scalars()
    ]
    deliveries.mark_sent(connection, [deliveries.sent_row(row, "1", at()) for row in claims])


def _cost(connection: sa.Connection, work: Work) -> int:
    """Instructions of SQLite's virtual machine."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(count, 1)
    try:
        work(connection)
    finally:
        driver.set_progress_handler(None, 1)
    return counted


POLLS: dict[str, Work] = {
    "claim": lambda link: deliveries.claim(link, at(), lease(), 100),
    "abandon": lambda link: deliveries.abandon(link, at()),
    "doubtful": lambda link: deliveries.doubtful(link, "sqlite", 100),
    "backlog": deliveries.backlog,
    "undelivered": lambda link: deliveries.undelivered(link, "sqlite"),
    "ledger": ledger.read,
    "meter": lambda link: spending.meter(link, at().date(), "telegram", "7"),
    "spent_in_all": spending.in_all,
    "due": lambda link: reads.due(link, at(), 100),
    "abandoned": lambda link: reads.abandoned(link, at(), 100),
    "load": lambda link: reads.load(link, CODEC, KEY),
    "bodies": lambda link: reads.bodies(link, CODEC, "sqlite", KEY, (3, 9)),
    "end_leases": end_leases,
    "tail": lambda link: reads.log(link, CODEC, KEY, 50, 55),
}


async def test_a_poll_looks_at_open_work_only(database: Database) -> None:
    def measure(connection: sa.Connection) -> dict[str, int]:
        return {name: _cost(connection, poll) for name, poll in POLLS.items()}

    await database.write(lambda link: _history(link, 0, SHORT))
    before = await database.write(measure)
    await database.write(lambda link: _history(link, SHORT, LONG))
    after = await database.write(measure)
    assert all(before.values())
    assert {name for name in POLLS if after[name] > before[name] * 1.5} == set()


async def test_a_step_costs_the_same_in_a_long_life(database: Database) -> None:
    def measure(connection: sa.Connection) -> tuple[int, int]:
        _history(connection, 0, SHORT)
        before = _cost(connection, lambda link: _apply(link, _step(SHORT)))
        _history(connection, SHORT + 1, LONG)
        return before, _cost(connection, lambda link: _apply(link, _step(LONG)))

    before, after = await database.write(measure)
    assert 0 < after <= before * 1.5
