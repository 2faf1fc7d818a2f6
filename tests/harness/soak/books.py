"""What the database says of itself after a soak: whole, folding, settled; it repairs nothing."""

from collections import Counter
from collections.abc import Mapping

import msgspec
import sqlalchemy as sa

from core.domain.events import Recorded
from core.domain.fold import fold
from core.domain.recovery import faults
from core.domain.state import SessionState
from core.errors import IllegalEventError
from storage.migrate import open_database
from storage.tables import events, inbox, outbox, streams

_GAPS = (
    sa.select(streams.c.key, streams.c.seq, sa.func.count(), sa.func.max(events.c.seq))
    .outerjoin_from(streams, events, events.c.stream == streams.c.id)
    .group_by(streams.c.id, streams.c.key, streams.c.seq)
)
_OPEN = sa.select(outbox.c.id, outbox.c.state).where(
    outbox.c.kind != "preview", outbox.c.state.not_in(("sent", "failed"))
)
_HELD = sa.select(outbox.c.id, outbox.c.state).where(outbox.c.holds)
_INBOX = sa.select(inbox.c.update_id, inbox.c.outcome)
_ORPHANS = sa.select(sa.func.count()).where(events.c.stream.not_in(sa.select(streams.c.id)))


class Books(msgspec.Struct, frozen=True):
    """``outcomes`` are by update id, ``mib`` the size of the database."""

    faults: list[str]
    outcomes: dict[int, str]
    events: int
    mib: float


async def audit(url: str, logs: Mapping[str, tuple[Recorded, ...]]) -> Books:
    """With the service down."""
    database = await open_database(url, read_only=True)
    try:
        found, outcomes, size = await database.read(_read)
    finally:
        await database.close()
    return Books(
        [*found, *_folds(logs)],
        {int(update_id): outcome for update_id, outcome in outcomes.items()},
        sum(map(len, logs.values())),
        size / 2**20,
    )


def _read(connection: sa.Connection) -> tuple[list[str], dict[str, str], int]:
    sqlite = connection.dialect.name == "sqlite"
    found = _sqlite_faults(connection) if sqlite else _postgres_faults(connection)
    for key, seq, count, last in connection.execute(_GAPS):
        found += [f"{key}: {count} events up to {last}, {seq} by its head"] * (
            (count, last or 0) != (seq, seq)
        )
    found += [f"message {row} is left {state}" for row, state in connection.execute(_OPEN)]
    found += [f"row {row} ({state}) holds its chat" for row, state in connection.execute(_HELD)]
    orphans = connection.execute(_ORPHANS).scalar_one()
    found += [f"{orphans} events belong to no session"] * bool(orphans)
    rows = [(row[0], row[1]) for row in connection.execute(_INBOX)]
    found += [f"update {one} was taken {n} times" for one, n in _repeated(rows)]
    return found, dict(rows), _size(connection, sqlite=sqlite)


def _repeated(rows: list[tuple[str, str]]) -> list[tuple[str, int]]:
    return [(one, n) for one, n in Counter(row[0] for row in rows).items() if n > 1]


def _sqlite_faults(connection: sa.Connection) -> list[str]:
    checks = [str(row[0]) for row in connection.execute(sa.text("PRAGMA integrity_check"))]
    broken = connection.execute(sa.text("PRAGMA foreign_key_check")).all()
    return [*(line for line in checks if line != "ok"), *(f"no parent: {row}" for row in broken)]


def _postgres_faults(connection: sa.Connection) -> list[str]:
    """amcheck looks into the indexes where the server has it."""
    there = "SELECT count(*) FROM pg_extension WHERE extname = 'amcheck'"
    if not connection.execute(sa.text(there)).scalar_one():
        return []
    every = (
        "SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_am a ON a.oid = c.relam "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE a.amname = 'btree' AND n.nspname = current_schema() AND c.relkind = 'i'"
    )
    connection.execute(sa.text(every)).all()
    return []


def _size(connection: sa.Connection, *, sqlite: bool) -> int:
    pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    whole = "SELECT pg_database_size(current_database())"
    return connection.execute(sa.text(pages if sqlite else whole)).scalar_one()


def _folds(logs: Mapping[str, tuple[Recorded, ...]]) -> list[str]:
    found: list[str] = []
    for key, log in logs.items():
        try:
            state = fold(SessionState(key=key), log)
        except IllegalEventError as error:
            found.append(f"{key} does not fold: {error}")
        else:
            found += [f"{key}: {fault}" for fault in faults(state)]
            found += [f"{key}: a turn is open in the end"] * (state.turn is not None)
    return found
