"""What aiosqlite costs by itself: one row in one table, nothing looked up; the yardstick only."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite

from core.ports import Commit
from storage.codec import Codec, message_text

_CODEC = Codec()
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 1000")
_TABLE = "CREATE TABLE log (stream INTEGER, seq INTEGER, data TEXT, PRIMARY KEY (stream, seq))"
_APPEND = "INSERT INTO log VALUES (?, ?, ?)"

RawRow = tuple[int, int, str]


def same_bytes(commit: Commit) -> str:
    """The JSON that the commit's events and outbox rows become."""
    events = [_CODEC.event_row(recorded).data for recorded in commit.log]
    return "".join([*events, *map(message_text, commit.outbox)])


def made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


class RawLog:
    """Stored with the same durability as ours: WAL, one flush a commit."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._waiting: list[tuple[RawRow, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def append(self, row: RawRow) -> None:
        await self._connection.execute(_APPEND, row)
        await self._connection.commit()

    async def append_grouped(self, row: RawRow) -> None:
        """What gathers while a transaction is under way goes into the next one, as ours does."""
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append((row, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await answer

    async def _run(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            await self._connection.executemany(_APPEND, [row for row, _ in group])
            await self._connection.commit()
            for _, answer in group:
                answer.set_result(None)
        self._task = None


@asynccontextmanager
async def raw_log(folder: Path) -> AsyncGenerator[RawLog]:
    async with aiosqlite.connect(made(folder) / "raw.db") as connection:
        for pragma in _PRAGMAS:
            await connection.execute(f"PRAGMA {pragma}")
        await connection.execute(_TABLE)
        await connection.commit()
        yield RawLog(connection)
