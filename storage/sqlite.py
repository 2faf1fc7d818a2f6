"""SQLite by aiosqlite: one process, one file, one writer; never shares the file with a second
process."""

import asyncio
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import sqlalchemy as sa
from filelock import FileLock, Timeout
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from core.errors import ConfigurationError, StorageError
from storage.engine import DialectName, T, Work, storage_errors, transact
from storage.url import SqliteUrl

_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "busy_timeout = 5000",
    "foreign_keys = ON",
    "wal_autocheckpoint = 1000",
    "journal_size_limit = 4194304",
    "cache_size = -16000",
    "temp_store = MEMORY",
)
_READERS = 2


class FileOwner:
    """The right to a database file; the operating system ends it with the process."""

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(f"{path}.lock", mode=0o600, thread_local=False)
        self._pid = path.with_name(f"{path.name}.pid")
        self._path = path

    def take(self) -> None:
        """Raises ConfigurationError when another process has it."""
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            raise ConfigurationError(
                f"{self._path} is in use by another process{self._whose()}. Stop that one first,"
                " or use PostgreSQL, which several processes can share"
            ) from None
        self._pid.touch(mode=0o600)
        self._pid.write_text(str(os.getpid()))

    def release(self) -> None:
        self._pid.unlink(missing_ok=True)
        self._lock.release()

    def _whose(self) -> str:
        try:
            return f" (pid {int(self._pid.read_text())})"
        except (OSError, ValueError):
            return ""


class SqliteDatabase:
    def __init__(self, path: Path, owner: FileOwner | None) -> None:
        self._path = path
        self._owner = owner
        self._reading = _engine(path, read_only=True, pool_size=_READERS)
        self._writing = _engine(path, read_only=False, pool_size=1)
        self._connection: AsyncConnection | None = None
        self._closed = False

    @property
    def dialect(self) -> DialectName:
        return "sqlite"

    @property
    def exclusive(self) -> bool:
        return self._owner is not None

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    async def write(self, work: Work[T]) -> T:
        if self._owner is None:
            raise StorageError("the database is open for reading only")
        with storage_errors(sqlite3.Error):
            if self._connection is None:
                self._connection = await self._writing.connect()
            return await self._connection.run_sync(transact, work)

    async def read(self, work: Work[T]) -> T:
        with storage_errors(sqlite3.Error):
            async with self._reading.connect() as connection:
                return await connection.run_sync(transact, work)

    async def backup(self, tag: str) -> Path | None:
        with storage_errors(sqlite3.Error):
            return await asyncio.to_thread(_backup, self._path, tag)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._reading.dispose()
        if self._connection is not None:
            await self._connection.close()
        await self._writing.dispose()
        if self._owner is not None:
            self._owner.release()


async def open_sqlite(url: SqliteUrl, *, read_only: bool = False) -> SqliteDatabase:
    """Raises ConfigurationError when another process has the file, or it cannot be opened."""
    path = url.path.resolve()
    if read_only:
        if not path.exists():
            raise ConfigurationError(f"there is no database at {path} yet")
        return SqliteDatabase(path, None)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        os.close(os.open(path, os.O_RDWR))
        owner = FileOwner(path)
        owner.take()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be opened: {error.strerror}") from error
    return SqliteDatabase(path, owner)


def _engine(path: Path, *, read_only: bool, pool_size: int) -> AsyncEngine:
    engine = create_async_engine(
        sa.URL.create("sqlite+aiosqlite", database=str(path)),
        pool_size=pool_size,
        max_overflow=0,
        connect_args={"isolation_level": None},
    )
    begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"

    def on_connect(connection: DBAPIConnection, _: object) -> None:
        with closing(connection.cursor()) as cursor:
            for pragma in _PRAGMAS:
                cursor.execute(f"PRAGMA {pragma}")
            if read_only:
                cursor.execute("PRAGMA query_only = ON")

    def on_begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine.sync_engine, "connect", on_connect)
    event.listen(engine.sync_engine, "begin", on_begin)
    return engine


def _backup(path: Path, tag: str) -> Path:
    target = _free_name(path, tag)
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        if copy.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError(f"the backup {target} is damaged")
    with _synced(target), _synced(target.parent):
        return target


def _free_name(path: Path, tag: str) -> Path:
    number = 0
    while (target := path.with_name(f"{path.name}.{tag}{f'.{number}' * bool(number)}")).exists():
        number += 1
    return target


@contextmanager
def _synced(path: Path) -> Generator[None]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        yield
    finally:
        os.close(descriptor)
