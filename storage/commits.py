"""Many commits in one transaction, by a few bulk statements; none can spoil another."""

from collections.abc import Iterable, Sequence

import msgspec
import sqlalchemy as sa

from core.errors import StillhereError
from core.ports import InboxId, Outcome
from storage.checks import Ground, Head
from storage.engine import DialectName, insert, json_list, json_rows, upsert
from storage.ledger import Moves, adding, settled_id
from storage.listening import Telling, news_of
from storage.rows import Prepared, Row
from storage.spending import Bills
from storage.tables import access, artifacts, events, inbox, outbox, snapshots, streams, timers

_HEAD = tuple(Head.__struct_fields__)
Failed = Sequence[tuple[str, str]]
"""Platform and key of each message."""


class Commits:
    """Built once: what is the same in every transaction is made beforehand."""

    def __init__(self, dialect: DialectName, telling: Telling | None = None) -> None:
        self._telling = telling or Telling(dialect)
        of_key = streams.c.key.in_(json_rows(dialect, "keys", str))
        of_id = sa.tuple_(inbox.c.platform, inbox.c.account, inbox.c.update_id)
        self._heads = (
            sa.select(streams.c.id, streams.c.key, *(streams.c[name] for name in _HEAD))
            .where(of_key)
            .order_by(streams.c.key)
            .with_for_update()
        )
        self._known = sa.select(
            inbox.c.platform, inbox.c.account, inbox.c.update_id, inbox.c.outcome
        ).where(of_id.in_(json_rows(dialect, "ids", str, str, str)))
        self._owner = sa.select(access.c.platform, access.c.user).where(access.c.role == "owner")
        self._events = sa.insert(events)
        self._inbox = sa.insert(inbox)
        self._outbox = sa.insert(outbox)
        self._open = sa.insert(streams).returning(streams.c.id, streams.c.key)
        self._move = (
            sa.update(streams)
            .where(streams.c.id == sa.bindparam("of_id"))
            .values({name: sa.bindparam(name) for name in _HEAD if name != "owed"})
        )
        self._move_owing = self._move.values(owed=sa.bindparam("owed"))
        self._settle = (
            sa.update(inbox)
            .where(
                inbox.c.platform == sa.bindparam("of_platform"),
                inbox.c.account == sa.bindparam("of_account"),
                inbox.c.update_id == sa.bindparam("of_update_id"),
            )
            .values(outcome=sa.bindparam("outcome"))
        )
        self._clear = sa.delete(timers).where(timers.c.id == sa.bindparam("of_id"))
        self._snapshot = upsert(dialect, snapshots)
        self._timer = upsert(dialect, timers)
        self._grant = upsert(dialect, access)
        self._artifact = insert(dialect, artifacts).on_conflict_do_nothing()
        self._count = adding(dialect)
        self._bills = Bills(dialect)

    def apply(
        self, connection: sa.Connection, work: Sequence[Prepared], failed: Failed = ()
    ) -> list[int | StillhereError]:
        """The number of its log for each that is stored, its own error for each that is not.
        ``failed`` are messages that fail in the same transaction, to be counted with the rest."""
        ids, ground, moves = self._look(connection, work)
        errors = [_admitted(ground, prepared) for prepared in work]
        stored = [prepared for prepared, error in zip(work, errors, strict=True) if error is None]
        if stored:
            self._write(connection, ids, ground, stored)
        for platform, key in failed:
            moves.move(platform, key, "failed")
        self._write_counts(connection, moves, stored)
        self._telling.tell(connection, news_of(ground, stored))
        return [error or ids[one.commit.key] for one, error in zip(work, errors, strict=True)]

    def _look(
        self, connection: sa.Connection, work: Sequence[Prepared]
    ) -> tuple[dict[str, int], Ground, Moves]:
        keys = sorted({prepared.commit.key for prepared in work})
        wanted = {"keys": json_list([key] for key in keys)}
        found = connection.execute(self._heads, wanted).all()
        ids: dict[str, int] = {row.key: row.id for row in found}
        heads = {row.key: Head(*row[2:]) for row in found}
        known = self._look_up(connection, work)
        owner = None
        if any(prepared.access for prepared in work):
            row = connection.execute(self._owner).first()
            owner = (row[0], row[1]) if row else None
        return ids, Ground(heads, known, owner, dict(ids)), Moves(known)

    def _look_up(
        self, connection: sa.Connection, work: Sequence[Prepared]
    ) -> dict[InboxId, Outcome]:
        """The inbox rows that are there of those taken or settled. Their outcomes stay as they are
        until we are done: only commits of their own key change them, whose head is locked."""
        asked = {one.commit.inbox for one in work if one.commit.inbox is not None}
        asked |= {settled_id(row) for one in work for row in one.settled}
        if not asked:
            return {}
        ids = json_list(msgspec.structs.astuple(one) for one in asked)
        return {InboxId(*row[:3]): row[3] for row in connection.execute(self._known, {"ids": ids})}

    def _write(
        self,
        connection: sa.Connection,
        ids: dict[str, int],
        ground: Ground,
        stored: Sequence[Prepared],
    ) -> None:
        self._write_heads(connection, ids, ground, stored)
        for prepared in stored:
            for row in prepared.events:
                row["stream"] = ids[prepared.commit.key]

        def write(statement: sa.Executable, rows: list[Row]) -> None:
            if rows:
                connection.execute(statement, rows)

        write(self._events, [row for one in stored for row in one.events])
        write(self._inbox, _sorted(row for one in stored for row in one.inbox))
        write(self._settle, [row for one in stored for row in one.settled])
        write(self._outbox, [row for one in stored for row in one.outbox])
        cleared, moved = _timers(stored)
        write(self._clear, cleared)
        write(self._timer, moved)
        write(self._grant, [row for one in stored for row in one.access])
        write(self._artifact, [row for one in stored for row in one.artifacts])
        write(self._snapshot, _snapshots(ids, stored))

    def _write_counts(
        self, connection: sa.Connection, moves: Moves, stored: Sequence[Prepared]
    ) -> None:
        """Last of all: who holds a row of counts waits for nobody any more. They are taken in one
        order in every process."""
        self._bills.write(connection, stored)
        for prepared in stored:
            moves.add(prepared)
        rows = moves.rows()
        if rows:
            connection.execute(self._count, rows)

    def _write_heads(
        self,
        connection: sa.Connection,
        ids: dict[str, int],
        ground: Ground,
        stored: Sequence[Prepared],
    ) -> None:
        keys = sorted({prepared.commit.key for prepared in stored})
        rows = {key: msgspec.structs.asdict(ground.heads[key]) for key in keys}
        fresh = [{"key": key, **rows[key]} for key in keys if key not in ids]
        # What stays is not named: naming a column writes its index anew on SQLite.
        same: list[Row] = []
        owing: list[Row] = []
        for key in (key for key in keys if key in ids):
            row: Row = {"of_id": ids[key], **rows[key]}
            if row["owed"] == ground.before[key].owed:
                del row["owed"]
                same.append(row)
            else:
                owing.append(row)
        if same:
            connection.execute(self._move, same)
        if owing:
            connection.execute(self._move_owing, owing)
        if fresh:
            ids.update({row[1]: row[0] for row in connection.execute(self._open, fresh)})


def _admitted(ground: Ground, prepared: Prepared) -> StillhereError | None:
    try:
        ground.admit(prepared.commit)
    except StillhereError as error:
        return error
    return None


def _sorted(rows: Iterable[Row]) -> list[Row]:
    """In one order in every process, so that two of them cannot wait for each other."""
    return sorted(rows, key=lambda row: (row["platform"], row["account"], row["update_id"]))


def _timers(stored: Sequence[Prepared]) -> tuple[list[Row], list[Row]]:
    last: dict[str, Row | None] = {}
    for prepared in stored:
        last.update(dict.fromkeys(prepared.cleared))
        last.update({row["id"]: row for row in prepared.timers})
    cleared: list[Row] = [{"of_id": name} for name in sorted(last) if last[name] is None]
    return cleared, [row for name in sorted(last) if (row := last[name]) is not None]


def _snapshots(ids: dict[str, int], stored: Sequence[Prepared]) -> list[Row]:
    last = {one.commit.key: one.snapshot for one in stored if one.snapshot is not None}
    return [{**row, "stream": ids[key]} for key, row in sorted(last.items())]
