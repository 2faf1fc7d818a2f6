"""Brings a database to the revision that this program needs; never touches a newer one.

Alembic is imported only when there is something to do: it takes longer than the rest of a start.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import sqlalchemy as sa

from core.errors import ConfigurationError
from storage.engine import Database
from storage.postgres import open_postgres
from storage.sqlite import open_sqlite
from storage.url import PostgresUrl, SqliteUrl, parse_url
from storage.way import POOL_SIZE

_LOCK = 0x5711_1EE5
"""PostgreSQL's advisory lock for the length of an upgrade's transaction; any fixed number does."""


class Revisions(msgspec.Struct, frozen=True):
    """``names`` from the oldest to the newest."""

    folder: Path
    names: tuple[str, ...]


OURS = Revisions(
    Path(__file__).with_name("migrations"), ("0001", "0002", "0003", "0004", "0005", "0006")
)


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


async def bring_up(database: Database, revisions: Revisions = OURS) -> Path | None:
    """As ``migrate``."""
    found = await database.read(_revision)
    if _is_current(found, revisions):
        return None
    backup = await database.backup(f"before-{revisions.names[-1]}") if found else None
    upgrade = cast(
        Callable[[sa.Connection, Path], None],
        importlib.import_module("storage.upgrade").upgrade,
    )

    def work(connection: sa.Connection) -> None:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        if not _is_current(_revision(connection), revisions):
            upgrade(connection, revisions.folder)

    await database.alter(work)
    return backup


async def require_current(database: Database, revisions: Revisions = OURS) -> None:
    """Raises ConfigurationError unless the database is as this program needs it."""
    if not _is_current(await database.read(_revision), revisions):
        raise ConfigurationError(
            "The database has to be created or upgraded first: start the service,"
            " or run `stillhere migrate`"
        )


def _is_current(found: str | None, revisions: Revisions) -> bool:
    if found is not None and found not in revisions.names:
        raise ConfigurationError(
            f"The database is at revision {found}, this program knows up to"
            f" {revisions.names[-1]}. Run the newer version, or put back the backup that its"
            " upgrade made"
        )
    return found == revisions.names[-1]


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version = sa.table("alembic_version", sa.column("version_num", sa.Text))
    return connection.execute(sa.select(version.c.version_num)).scalar()
