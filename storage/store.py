"""The store on a database: everything that must be in one transaction is; never holds a state."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import sqlalchemy as sa

from core.domain.events import Recorded, Role
from core.domain.ledger import Ledger
from core.domain.messages import OutboxMessage, Usage
from core.domain.spending import Meter, Spent
from core.errors import StorageError
from core.ports import (
    UNWATCHED,
    AccessGrant,
    Claimed,
    Commit,
    Hear,
    Lease,
    Notification,
    Platforms,
    PreviewState,
    RawHead,
    RawRow,
    Stored,
    StreamInfo,
    Telemetry,
    Timer,
    Unowed,
)
from storage import deliveries, ledger, raw, reads, spending
from storage.aside import Asides, Move
from storage.codec import Codec, clean, micros
from storage.commits import Commits
from storage.engine import Database, insert, json_list, json_rows, upsert
from storage.files import FOLDER, FolderShelf, Shelf, TableShelf
from storage.leases import Leases
from storage.listening import Telling
from storage.migrate import bring_up, open_database, require_current, standing_of
from storage.promises import Promise, Promises, fact_row
from storage.revisions import Standing, newer_notes
from storage.rows import outbox_row, prepare
from storage.tables import facts, streams, timers
from storage.takeover import end_leases
from storage.way import POOL_SIZE
from storage.writer import Writer, watched

T = TypeVar("T")


class SqlStore:
    """``core.ports.Store``. ``backup`` is the copy that an upgrade at the opening made;
    ``notes`` say what of the address was not used, and that the database is a newer version's."""

    def __init__(
        self,
        database: Database,
        codec: Codec | None = None,
        backup: Path | None = None,
        standing: Standing | None = None,
        telemetry: Telemetry = UNWATCHED,
    ) -> None:
        self.backup = backup
        self.standing = standing
        self._database = database
        self._telemetry = telemetry
        self._codec = codec or Codec()
        self._telling = Telling(database.dialect)
        self._leases = Leases(database.dialect)
        self._commits = Commits(database.dialect, self._telling)
        self._asides = Asides(self._commits)
        self._writer = Writer(database, self._commits.apply, telemetry)
        self._shelf: Shelf = (
            FolderShelf(database.folder / FOLDER)
            if database.folder
            else TableShelf(database, self._writer)
        )
        self._of_keys = streams.c.key.in_(json_rows(database.dialect, "keys", str))
        self._set_fact = upsert(database.dialect, facts)
        self._first_fact = (
            insert(database.dialect, facts)
            .on_conflict_do_update(index_elements=[facts.c.name], set_={"value": facts.c.value})
            .returning(facts.c.value)
        )
        self._promises = Promises(database.dialect)
        self._closed = False

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        direct: str = "",
        read_only: bool = False,
        pool_size: int = POOL_SIZE,
        telemetry: Telemetry = UNWATCHED,
    ) -> Self:
        """Creates or upgrades the database first. ``read_only`` does neither and takes no lock, so
        that it works beside a running service. ``direct`` and ``pool_size``: as for
        ``open_database``; the latter is how many connections to a PostgreSQL there are.

        Raises ConfigurationError, StorageError.
        """
        database = await open_database(url, direct=direct, read_only=read_only, pool_size=pool_size)
        try:
            if read_only:
                return cls(database, standing=await require_current(database))
            backup = await bring_up(database)
            if database.exclusive:
                await database.write(end_leases)
            standing = await standing_of(database)
            return cls(database, backup=backup, standing=standing, telemetry=telemetry)
        except BaseException:
            await database.close()
            raise

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._database.notes, *newer_notes(self.standing))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._writer.close()
            await self._database.close()

    async def load(self, key: str) -> Stored:
        return await self._read(lambda connection: reads.load(connection, self._codec, key))

    async def events(
        self, key: str, first: int = 1, last: int | None = None
    ) -> tuple[Recorded, ...]:
        return await self._read(lambda link: reads.log(link, self._codec, key, first, last))

    async def bodies(self, key: str, seqs: tuple[int, ...]) -> tuple[Recorded, ...]:
        dialect = self._database.dialect
        return await self._read(lambda link: reads.bodies(link, self._codec, dialect, key, seqs))

    async def commit(self, commit: Commit) -> int:
        return await self._writer.do(self._commits.apply, prepare(commit, self._codec))

    async def renew(self, keys: tuple[str, ...], lease: Lease) -> dict[str, int]:
        renewed = (
            sa.update(streams)
            .where(self._of_keys, streams.c.owner == lease.owner)
            .values(lease_until=micros(lease.until))
            .returning(streams.c.key, streams.c.seq)
        )
        wanted = {"keys": json_list([key] for key in keys)}
        return await self._write(lambda link: dict(map(tuple, link.execute(renewed, wanted))))

    async def abandoned(
        self, now: datetime, limit: int = 100, platforms: Platforms = None
    ) -> tuple[str, ...]:
        return await self._read(
            lambda connection: reads.abandoned(connection, now, limit, platforms)
        )

    async def untaken(self, keys: tuple[str, ...]) -> frozenset[str]:
        untaken = sa.select(streams.c.key).where(
            self._of_keys, streams.c.open_turn, streams.c.owner == ""
        )
        wanted = {"keys": json_list([key] for key in keys)}
        return await self._read(lambda link: frozenset(link.execute(untaken, wanted).scalars()))

    async def streams(self, prefix: str = "", limit: int = 1000) -> tuple[StreamInfo, ...]:
        return await self._read(lambda connection: reads.infos(connection, prefix, limit))

    async def set_aside(
        self, key: str, stream: int, at: datetime, first: Commit | None = None
    ) -> str:
        follows = () if first is None else (prepare(first, self._codec),)
        move = Move(key, stream, at, follows)
        return await self._writer.do(self._asides.apply, move, alone=True)

    async def asides(self) -> tuple[str, ...]:
        return await self._read(reads.asides)

    async def raw_head(self, key: str) -> RawHead | None:
        return await self._read(lambda connection: raw.head(connection, key))

    async def raw_events(self, key: str, after: int | None, limit: int) -> tuple[RawRow, ...]:
        return await self._read(lambda connection: raw.events_of(connection, key, after, limit))

    async def artifact(self, artifact_id: str) -> str | None:
        return await self._read(lambda link: reads.artifact(link, clean(artifact_id)))

    async def promise(
        self, messages: tuple[OutboxMessage, ...], fact: str, value: str, at: datetime
    ) -> bool:
        rows = tuple(outbox_row(message, micros(at)) for message in messages)
        promise = Promise(fact_row(fact, value), rows)
        return await self._writer.do(self._promises.keep, promise, alone=True)

    async def claim(
        self, now: datetime, lease: Lease, limit: int = 100, platforms: Platforms = None
    ) -> tuple[Claimed, ...]:
        return tuple(
            await self._write(lambda link: deliveries.claim(link, now, lease, limit, platforms))
        )

    async def sent(self, row: Claimed, platform_id: str, at: datetime) -> None:
        change = deliveries.sent_row(row, platform_id, at)
        await self._writer.do(deliveries.mark_sent, change)

    async def retry(self, row: Claimed, not_before: datetime, error: str) -> None:
        change = deliveries.ended_row(row, error, not_before)
        await self._writer.do(deliveries.mark_retry, change)

    async def give_up(self, row: Claimed, error: str, at: datetime) -> None:
        change = deliveries.ended_row(row, error, at)
        await self._writer.do(deliveries.mark_failed, change)

    async def unknown(self, row: Claimed, error: str) -> None:
        await self._writer.do(deliveries.mark_unknown, deliveries.doubtful_row(row, error))

    async def unsettled(
        self,
        now: datetime,
        limit: int = 100,
        platforms: Platforms = None,
        beside: Collection[int] = (),
    ) -> tuple[Claimed, ...]:
        def find(connection: sa.Connection) -> list[Claimed]:
            deliveries.abandon(connection, now)
            return deliveries.doubtful(connection, self._database.dialect, limit, platforms, beside)

        return tuple(await self._write(find))

    async def open_preview(
        self, message: OutboxMessage, lease: Lease, at: datetime
    ) -> tuple[PreviewState, Claimed | None]:
        dialect = self._database.dialect
        return await self._write(
            lambda connection: deliveries.open_preview(connection, dialect, message, lease, at)
        )

    async def backlog(self) -> dict[str, int]:
        return await self._read(deliveries.backlog)

    async def undelivered(self) -> dict[str, dict[str, int]]:
        dialect = self._database.dialect
        return await self._read(lambda link: deliveries.undelivered(link, dialect))

    async def due(
        self, now: datetime, limit: int = 100, platforms: Platforms = None
    ) -> tuple[Timer, ...]:
        return await self._read(lambda connection: reads.due(connection, now, limit, platforms))

    async def clear(self, timer: Timer) -> None:
        cleared = sa.delete(timers).where(
            timers.c.id == clean(timer.id), timers.c.due == micros(timer.due)
        )
        await self._write(lambda connection: connection.execute(cleared))

    async def role(self, platform: str, user: str) -> Role | None:
        return await self._read(lambda link: reads.role(link, clean(platform), clean(user)))

    async def grants(self) -> tuple[AccessGrant, ...]:
        return await self._read(reads.grants)

    async def fact(self, name: str) -> str | None:
        return await self._read(lambda connection: reads.fact(connection, clean(name)))

    async def facts(self, start: str) -> Mapping[str, str]:
        return await self._read(lambda connection: reads.facts_of(connection, clean(start)))

    async def set_fact(self, name: str, value: str) -> None:
        row = fact_row(name, value)
        await self._write(lambda connection: connection.execute(self._set_fact, row))

    async def first_fact(self, name: str, value: str) -> str:
        row = fact_row(name, value)
        return await self._write(lambda link: link.execute(self._first_fact, row).scalar_one())

    async def disown(self, facts: Mapping[str, str]) -> None:
        await self._write(lambda connection: self._promises.disown(connection, facts))

    async def forget_facts(self, names: Collection[str]) -> None:
        gone = sa.delete(facts).where(facts.c.name.in_(list(map(clean, names))))
        await self._write(lambda connection: connection.execute(gone))

    async def ledger(self) -> dict[str, Ledger]:
        return await self._read(ledger.read)

    async def waiting_since(self) -> dict[str, datetime]:
        return await self._read(ledger.waiting_since)

    async def unowed(self, limit: int = 20) -> tuple[Unowed, ...]:
        return await self._read(lambda connection: ledger.unowed(connection, limit))

    async def meter(self, day: date, platform: str, person: str) -> Meter:
        who = (clean(platform), clean(person))
        return await self._read(lambda link: spending.meter(link, day, *who))

    async def spent(self, platform: str, person: str, first: date, last: date) -> Usage:
        who = (clean(platform), clean(person))
        return await self._read(lambda link: spending.spent(link, *who, first, last))

    async def spent_most(self, day: date, limit: int = 5) -> tuple[Spent, ...]:
        return await self._read(lambda link: spending.most(link, day, limit))

    async def spent_in_all(self) -> dict[str, Usage]:
        return await self._read(spending.in_all)

    async def take_lease(self, name: str, lease: Lease, now: datetime) -> bool:
        return await self._write(lambda link: self._leases.take(link, name, lease, now))

    async def release(self, name: str, owner: str) -> None:
        def let_go(connection: sa.Connection) -> None:
            if self._leases.release(connection, name, owner):
                self._telling.tell(connection, [Notification("lease", name)])

        await self._write(let_go)

    async def listen(self, hear: Hear) -> None:
        await self._database.listen(hear, self._telling.sender)

    async def keep_file(self, data: bytes) -> str:
        self._require_open()
        return await self._shelf.put(data)

    async def file(self, sha: str) -> bytes | None:
        self._require_open()
        return await self._shelf.get(sha)

    async def _read(self, work: Callable[[sa.Connection], T]) -> T:
        self._require_open()
        with watched(self._telemetry, "read"):
            return await self._database.read(work)

    async def _write(self, work: Callable[[sa.Connection], T]) -> T:
        return await self._writer.do(_each, work)

    def _require_open(self) -> None:
        if self._closed:
            raise StorageError("the store is closed")


def _each(connection: sa.Connection, works: Sequence[Callable[[sa.Connection], Any]]) -> list[Any]:
    return [work(connection) for work in works]
