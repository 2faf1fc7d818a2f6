"""How many bytes on disk a byte of conversation costs, and where they are."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.filling import relive, sql_store
from core.ports import Commit
from storage.store import SqlStore


class DiskUse(msgspec.Struct, frozen=True):
    """Bytes. ``running`` is what the files take while the service runs, the journal with all
    that it keeps for later included; ``tables`` is empty where SQLite cannot tell."""

    payload: int
    at_rest: int
    running: int
    tables: dict[str, int]


async def measure(folder: Path, past: list[Commit], payload: int) -> DiskUse:
    async with sql_store(folder / "disk", SqlStore) as store:
        await relive(store, past)
        running = _size(folder / "disk")
    path = folder / "disk" / "store.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        tables = _tables(connection)
    return DiskUse(payload, path.stat().st_size, running, tables)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("store.db*"))


def _tables(connection: sqlite3.Connection) -> dict[str, int]:
    """Its indexes included; the largest first."""
    query = (
        "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name)"
        " GROUP BY tbl_name ORDER BY 2 DESC"
    )
    try:
        return dict(connection.execute(query))
    except sqlite3.OperationalError:
        return {}
