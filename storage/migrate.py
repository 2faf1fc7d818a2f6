"""Brings a database to the revision that this program needs; never touches a newer one.

Alembic is imported only when there is something to do: it takes longer than the rest of a start.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import cast

import sqlalchemy as sa

from core.errors import ConfigurationError
from storage.engine import Database
from storage.postgres import open_postgres
from storage.revisions import OURS, Revisions, Standing, say, standing
from storage.sqlite import open_sqlite
from storage.url import PostgresUrl, SqliteUrl, parse_url
from storage.way import POOL_SIZE

_LOCK = 0x5711_1EE5
"""PostgreSQL's advisory lock for the length of an upgrade's transaction; any fixed number does."""
_TABLE_LOCK_SECONDS = 20
"""How long a change of a table waits for those who use it. All who come after it wait behind it, so
an upgrade rather fails, with nothing changed, and is tried again."""

Waiting = Callable[[], None]


async def open_database(
    url: str, *, direct: str = "", read_only: bool = False, pool_size: int = POOL_SIZE
) -> Database:
    """``direct``: as for ``open_postgres``, if any. Raises ConfigurationError, StorageError."""
    match parse_url(url):
        case SqliteUrl() as file:
            return await open_sqlite(file, read_only=read_only)
        case server:
            past = parse_url(direct) if direct else None
            return await open_postgres(
                server,
                direct=past if isinstance(past, PostgresUrl) else None,
                pool_size=pool_size,
                read_only=read_only,
            )


async def migrate(url: str) -> Path | None:
    """Returns the backup that an upgrade of a SQLite file made.

    Raises ConfigurationError when the database is newer than this program; StorageError.
    """
    database = await open_database(url)
    try:
        return await bring_up(database)
    finally:
        await database.close()


async def standing_of(database: Database, revisions: Revisions = OURS) -> Standing:
    """Raises ConfigurationError when the database is newer than this program, and not for it;
    StorageError."""
    return await database.read(lambda connection: standing(connection, revisions))


async def bring_up(
    database: Database, revisions: Revisions = OURS, waiting: Waiting | None = None
) -> Path | None:
    """As ``migrate``. ``waiting`` is called when another process is upgrading it just now."""
    found = await standing_of(database, revisions)
    if found.current:
        return None
    backup = await database.backup(f"before-{revisions.newest}") if found.found else None
    upgrade = alembic("upgrade")

    def work(connection: sa.Connection) -> None:
        take_turn(connection, waiting)
        if not standing(connection, revisions).current:
            upgrade(connection, revisions.folder, revisions.newest)
            say(connection, revisions.newest, revisions)

    await database.alter(work)
    return backup


def alembic(name: str) -> Callable[[sa.Connection, Path, str], None]:
    """One of the functions of storage/upgrade.py."""
    module = importlib.import_module("storage.upgrade")
    return cast(Callable[[sa.Connection, Path, str], None], getattr(module, name))


def take_turn(connection: sa.Connection, waiting: Waiting | None = None) -> None:
    """One process at a time changes the tables, until its transaction ends. A SQLite file has one
    process anyway."""
    if connection.dialect.name != "postgresql":
        return
    if not connection.execute(sa.select(sa.func.pg_try_advisory_xact_lock(_LOCK))).scalar():
        if waiting is not None:
            waiting()
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_TABLE_LOCK_SECONDS}s'")


async def require_current(database: Database, revisions: Revisions = OURS) -> Standing:
    """Raises ConfigurationError unless this program can read the database as it is."""
    found = await standing_of(database, revisions)
    if not found.current:
        raise ConfigurationError(
            f"The database is {f'at revision {found.found}' if found.found else 'empty'}, this"
            f" version needs {found.needed}: start the service, or run `stillhere migrate`"
        )
    return found
