"""Files by the hash of what is in them; never written twice, and never over another."""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from core.errors import StorageError
from storage.engine import Database, insert
from storage.rows import Row
from storage.tables import files
from storage.writer import Writer

FOLDER = "files"
_PARTIAL = ".partial-"


def sha_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Shelf(Protocol):
    """Raises StorageError."""

    async def put(self, data: bytes) -> str: ...

    async def get(self, sha: str) -> bytes | None: ...


class FolderShelf:
    """Beside a SQLite database, in ``files/<aa>/<sha256>``: in it they would be copied by each
    backup, and go through its log twice.

    A file has its name only when all of it is on disk, and the event that names it is committed
    after that: a kill leaves a file that nothing names, which the next try finds, or at worst one
    without a name. Two that write the same put the same bytes there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, data: bytes) -> str:
        sha = sha_of(data)
        try:
            await asyncio.to_thread(_write, self._place(sha), data)
        except OSError as error:
            raise StorageError(f"{self._folder} cannot be written: {error.strerror}") from error
        return sha

    async def get(self, sha: str) -> bytes | None:
        """A file that is damaged is as good as gone."""
        try:
            data = await asyncio.to_thread(self._place(sha).read_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{self._folder} cannot be read: {error.strerror}") from error
        return data if sha_of(data) == sha else None

    def _place(self, sha: str) -> Path:
        return self._folder / sha[:2] / sha


def _write(place: Path, data: bytes) -> None:
    if place.is_file() and place.read_bytes() == data:
        return
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=_PARTIAL, dir=place.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        Path(name).rename(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    for folder in (place.parent, place.parent.parent, place.parent.parent.parent):
        _sync(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class TableShelf:
    """In the database itself: several processes share it, and a disk is not promised."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._insert = insert(database.dialect, files).on_conflict_do_nothing()

    async def put(self, data: bytes) -> str:
        sha = sha_of(data)
        if await self.get(sha) is None:
            row: Row = {"sha": sha, "data": data}
            await self._writer.do(self._add, row)
        return sha

    async def get(self, sha: str) -> bytes | None:
        wanted = sa.select(files.c.data).where(files.c.sha == sha)
        found: bytes | None = await self._database.read(lambda link: link.execute(wanted).scalar())
        return None if found is None else bytes(found)

    def _add(self, connection: sa.Connection, rows: Sequence[Row]) -> list[None]:
        connection.execute(self._insert, rows)
        return [None for _ in rows]
