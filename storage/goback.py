"""Takes a database back to an earlier revision; loses nothing unless it is told to."""

from pathlib import Path

import msgspec
import sqlalchemy as sa

from core.errors import StillhereError
from storage.engine import Database
from storage.migrate import Waiting, alembic, take_turn
from storage.revisions import OURS, Revisions, say, standing
from storage.tables import events

_OTHERS = sa.text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)
"""https://www.postgresql.org/docs/current/monitoring-stats.html#MONITORING-PG-STAT-ACTIVITY-VIEW"""


class Toll(msgspec.Struct, frozen=True):
    """What a way back costs, in words. ``lost`` is thrown away; ``unread`` stays, and programs of
    that revision cannot read it."""

    lost: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def free(self) -> bool:
        return not self.lost and not self.unread


class RefusedWayError(StillhereError):
    """Nothing was changed."""


async def other_connections(database: Database) -> int:
    """How many others have the database open just now, whatever program they are. None can on
    SQLite. Raises StorageError."""
    if database.dialect == "sqlite":
        return 0
    return await database.read(lambda link: int(link.execute(_OTHERS).scalar_one()))


async def toll(database: Database, target: str, revisions: Revisions = OURS) -> Toll:
    """By going the way in a transaction that is given up. Raises StorageError."""
    downgrade = alembic("downgrade")

    def work(connection: sa.Connection) -> Toll:
        take_turn(connection)
        before = _shape(connection)
        rehearsal = connection.begin_nested()
        downgrade(connection, revisions.folder, target)
        after = _shape(connection)
        rehearsal.rollback()
        lost = _lost(connection, before, after, revisions.expendable)
        return Toll(lost, _unread(connection, revisions.unknown_to(target)))

    return await database.alter(work)


async def go_back(
    database: Database,
    target: str,
    found: str,
    revisions: Revisions = OURS,
    waiting: Waiting | None = None,
) -> Path | None:
    """Returns the backup that was made of a SQLite file. ``found`` is the revision that it was said
    to be at. Raises RefusedWayError, StorageError."""
    downgrade = alembic("downgrade")
    backup = await database.backup(f"before-back-to-{target}")

    def work(connection: sa.Connection) -> None:
        take_turn(connection, waiting)
        if standing(connection, revisions).found != found:
            raise RefusedWayError("another process has changed the revision just now; look again")
        downgrade(connection, revisions.folder, target)
        say(connection, target, revisions)

    await database.alter(work)
    return backup


_Shape = dict[str, dict[str, str | None]]
"""The columns of each table, with the default that each has."""


def _shape(connection: sa.Connection) -> _Shape:
    look = sa.inspect(connection)
    return {
        table: {column["name"]: column["default"] for column in look.get_columns(table)}
        for table in look.get_table_names()
    }


def _lost(
    connection: sa.Connection, before: _Shape, after: _Shape, expendable: frozenset[str]
) -> tuple[str, ...]:
    lost: list[str] = []
    for table, columns in before.items():
        if table in expendable:
            continue
        if table not in after:
            if many := _count(connection, table):
                lost.append(f"table {table}: {many} rows")
            continue
        for column in columns.keys() - after[table].keys() - _of(table, expendable):
            if many := _count(connection, table, column, columns[column]):
                lost.append(f"column {table}.{column}: {many} rows have something in it")
    return tuple(sorted(lost))


def _of(table: str, names: frozenset[str]) -> set[str]:
    return {name.removeprefix(f"{table}.") for name in names if name.startswith(f"{table}.")}


def _count(
    connection: sa.Connection, table: str, column: str | None = None, default: str | None = None
) -> int:
    query = sa.select(sa.func.count()).select_from(sa.table(table))
    if column is not None:
        value = sa.column(column, sa.Text)
        query = query.where(value.is_not(None))
        if default is not None:
            query = query.where(value.is_distinct_from(sa.text(default)))
    return int(connection.execute(query).scalar_one())


def _unread(connection: sa.Connection, unknown: dict[str, int]) -> tuple[str, ...]:
    """The newest version of each kind only: where an older one is still stored, it can be read."""
    if not unknown:
        return ()
    many, logs = sa.func.count(), sa.func.count(sa.distinct(events.c.stream))
    query = sa.select(events.c.type, many, logs).where(
        sa.or_(
            *(
                sa.and_(events.c.type == kind, events.c.version >= version)
                for kind, version in unknown.items()
            )
        )
    )
    rows = connection.execute(query.group_by(events.c.type).order_by(events.c.type))
    return tuple(f"{kind}: {count} events in {keys} conversations" for kind, count, keys in rows)


def refuse_if_costly(price: Toll, target: str) -> None:
    """Raises RefusedWayError, with every loss, one a line."""
    if price.free:
        return
    lines = [f"Going back to {target} has a price; nothing was changed."]
    lines += [f"It would throw away {one}" for one in price.lost]
    lines += [f"The older version cannot read {one}, and sets those aside" for one in price.unread]
    raise RefusedWayError("\n".join([*lines, "Say --lose-data if that is what you want"]))
