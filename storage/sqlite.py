"""SQLite by aiosqlite: one process, one file, one writer; never shares the file with a second
process.

A transaction runs as a whole in the connection's thread. Statement by statement it would be a
dozen hops between threads, which made a step three times as slow (measured).
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path

import aiosqlite
import sqlalchemy as sa
from filelock import FileLock, Timeout
from sqlalchemy import event
from sqlalchemy.pool import StaticPool

from core.errors import ConfigurationError, StorageError
from core.ports import Hear
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
_TEXT = partial(str, encoding="utf-8", errors="surrogateescape")
"""Bytes that are no text are the codec's to refuse, row by row; none of them fails a query."""
_MAGIC = b"SQLite format 3\0"
"""https://www.sqlite.org/fileformat.html#the_database_header"""


class InUseError(ConfigurationError):
    """Another process has the file."""


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
            raise InUseError(
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


class _Link(aiosqlite.Connection):
    """One connection and its thread, and SQLAlchemy's view of it, which lives in that thread."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        super().__init__(lambda: _open(path), iter_chunk_size=64)
        self._thread.daemon = True
        self._engine = _engine(lambda: self._conn, read_only=read_only)
        self._view: sa.Connection | None = None

    async def run(self, work: Work[T]) -> T:
        return await self._execute(self._transact, work)  # pyright: ignore[reportUnknownMemberType]

    def _transact(self, work: Work[T]) -> T:
        if self._view is None:
            self._view = self._engine.connect()
        return transact(self._view, work)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.text_factory = _TEXT
    return connection


async def _linked(path: Path, *, read_only: bool) -> _Link:
    link = _Link(path, read_only=read_only)
    await link
    return link


class SqliteDatabase:
    def __init__(self, path: Path, owner: FileOwner | None) -> None:
        self._path = path
        self._owner = owner
        self._writing: _Link | None = None
        self._readers: list[_Link] = []
        self._may_read = asyncio.Semaphore(_READERS)
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

    @property
    def folder(self) -> Path | None:
        return self._path.parent

    async def write(self, work: Work[T]) -> T:
        if self._owner is None:
            raise StorageError("the database is open for reading only")
        with storage_errors(sqlite3.Error):
            if self._writing is None:
                self._writing = await _linked(self._path, read_only=False)
            return await self._writing.run(work)

    async def read(self, work: Work[T]) -> T:
        with storage_errors(sqlite3.Error):
            async with self._reader() as reader:
                return await reader.run(work)

    @asynccontextmanager
    async def _reader(self) -> AsyncGenerator[_Link]:
        async with self._may_read:
            idle = self._readers.pop() if self._readers else None
            reader = idle or await _linked(self._path, read_only=True)
            try:
                yield reader
            finally:
                self._readers.append(reader)

    async def listen(self, hear: Hear, sender: str) -> None:
        """Nobody else has it open for writing."""
        await asyncio.Event().wait()

    async def alter(self, work: Work[T]) -> T:
        return await self.write(work)

    async def backup(self, tag: str) -> Path | None:
        with storage_errors(sqlite3.Error):
            return await asyncio.to_thread(_backup, self._path, tag)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for link in (*self._readers, *([self._writing] if self._writing else [])):
            await link.close()
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
        _check_kind(path)
        owner = FileOwner(path)
        owner.take()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be opened: {error.strerror}") from error
    return SqliteDatabase(path, owner)


def _check_kind(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
    if head not in (b"", _MAGIC):
        raise ConfigurationError(f"{path} is not a SQLite database; name another file")


def _engine(connection: Callable[[], sqlite3.Connection], *, read_only: bool) -> sa.Engine:
    engine = sa.create_engine("sqlite+pysqlite://", creator=connection, poolclass=StaticPool)
    begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"

    def on_connect(connection: sqlite3.Connection, _: object) -> None:
        with closing(connection.cursor()) as cursor:
            for pragma in _PRAGMAS:
                cursor.execute(f"PRAGMA {pragma}")
            if read_only:
                cursor.execute("PRAGMA query_only = ON")

    def on_begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return engine


def _backup(path: Path, tag: str) -> Path:
    target = _free_name(path, tag)
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        _copy_verified(path, target)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    with _synced(target), _synced(target.parent):
        return target


def _copy_verified(path: Path, target: Path) -> None:
    with closing(_open(path)) as source, closing(sqlite3.connect(target)) as copy:
        _copy(source, copy)
    with closing(_open(path)) as source, closing(_open(target)) as copy:
        if copy.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError(f"the backup {target} is damaged")
        if _row_counts(copy) != _row_counts(source):
            raise sqlite3.DatabaseError(f"the backup {target} does not have every row")


def _copy(source: sqlite3.Connection, copy: sqlite3.Connection) -> None:
    source.backup(copy)
    copy.execute("PRAGMA journal_mode = DELETE")


def _row_counts(connection: sqlite3.Connection) -> dict[str, int]:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {
        name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608
        for (name,) in names
    }


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
