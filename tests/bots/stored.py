"""A house on a real database, which can be damaged while nobody is in; it asserts nothing."""

import base64
import json
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from bots.app import Service
from core.domain.fold import fold
from core.domain.state import SessionState
from storage.bundle_export import Request, export
from storage.codec import micros, snapshot_text
from storage.engine import Database, Work
from storage.migrate import open_database
from storage.quarantine import bundle_name
from storage.store import SqlStore
from storage.tables import events, snapshots, streams
from tests.bots.life import House

T = TypeVar("T")
EventRow = tuple[Any, Any, Any, Any, bytes]
"""seq, at, type, version, data"""


class StoredHouse(House):
    def __init__(self, url: str, folder: Path, *lines: Any) -> None:
        super().__init__(*lines, stillhere_data=folder, drain_seconds=0, database_url=url)
        self.url = url
        self.quarantine = folder / "quarantine"
        self._copies = folder / "copies"

    @asynccontextmanager
    async def opens(self) -> AsyncGenerator[Service]:
        """One life of the service, the database's opening and closing included."""
        store = self.store = await SqlStore.open(self.url)
        try:
            async with self.lives() as service:
                yield service
        finally:
            await store.close()

    async def asks(self, look: Callable[[SqlStore], Awaitable[T]]) -> T:
        """Of the store, while nobody is in."""
        store = await SqlStore.open(self.url)
        try:
            return await look(store)
        finally:
            await store.close()

    async def damage(self, work: Work[Any]) -> None:
        await self._with_database(lambda database: database.write(work))

    async def event_rows(self, key: str) -> list[EventRow]:
        columns = (events.c[name] for name in ("seq", "at", "type", "version"))
        text = sa.cast(events.c.data, sa.Text)
        wanted = sa.select(*columns, text).join(streams).where(streams.c.key == key)

        def work(connection: sa.Connection) -> list[EventRow]:
            found: list[Any] = [*connection.execute(wanted.order_by(events.c.seq))]
            return [(row[0], row[1], row[2], row[3], as_bytes(row[4])) for row in found]

        return await self._with_database(lambda database: database.read(work))

    async def snapshot_row(self, key: str) -> tuple[Any, ...]:
        text = sa.cast(snapshots.c.data, sa.Text)
        wanted = sa.select(snapshots.c.seq, snapshots.c.version, text).join(streams)

        def work(connection: sa.Connection) -> tuple[Any, ...]:
            return tuple(connection.execute(wanted.where(streams.c.key == key)).one())

        return await self._with_database(lambda database: database.read(work))

    async def keeps_early_snapshot(self, key: str) -> tuple[Any, ...]:
        """Of the first two events, as if it had been killed and not stopped; returns its row."""
        log = await self.asks(lambda store: store.events(key, 1, 2))
        data = snapshot_text(fold(SessionState(key=key), log))
        of_key = sa.select(streams.c.id).where(streams.c.key == key).scalar_subquery()
        row = sa.update(snapshots).where(snapshots.c.stream == of_key)
        await self.damage(lambda link: link.execute(row.values(seq=2, data=data)).close())
        return await self.snapshot_row(key)

    async def keys(self) -> list[str]:
        return [info.key for info in await self.asks(lambda store: store.streams())]

    async def bundles(self) -> list[Path]:
        """Of the logs that were set aside; with a PostgreSQL only when someone asks for them."""
        if self.settings.keeps_files:
            return sorted(self.quarantine.iterdir())
        assert not self.quarantine.exists()
        shutil.rmtree(self._copies, ignore_errors=True)
        for key in await self.asks(lambda store: store.asides()):
            target = self._copies / bundle_name(key)
            request = Request(key=key, target=target, at=self.clock.now(), why="asked for")
            await self.asks(lambda store, asked=request: export(store, asked))
        return sorted(self._copies.iterdir())

    async def _with_database(self, use: Callable[[Database], Awaitable[T]]) -> T:
        database = await open_database(self.url)
        try:
            return await use(database)
        finally:
            await database.close()


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def rows_of_bundle(folder: Path) -> list[EventRow]:
    """What a reader with nothing but the documents makes of it."""
    files = sorted(folder.glob("events*.jsonl"))
    return [_row(line) for file in files for line in file.read_bytes().splitlines()]


def _row(line: bytes) -> EventRow:
    found = json.loads(line)
    at = micros(datetime.fromisoformat(found["timestamp"])) if "timestamp" in found else found["at"]
    data = {
        "data": lambda: line.partition(b'"data":')[2][:-1],
        "text": lambda: found["text"].encode(),
        "base64": lambda: base64.b64decode(found["base64"]),
    }
    (form,) = data.keys() & found.keys()
    return found["seq"], at, _text(found["type"]), found["version"], data[form]()


def _text(value: Any) -> Any:
    if isinstance(value, str | int):
        return value
    return base64.b64decode(value["base64"]).decode("utf-8", "surrogateescape")
