"""What is looked up, in SQL; never writes."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from core.domain.events import Recorded, Role
from core.domain.keys import key_of_aside
from core.errors import BrokenDataError
from core.ports import AccessGrant, Platforms, Stored, StreamInfo, Timer
from storage.codec import Codec, EventRow, micros, moment, snapshot
from storage.engine import DialectName, json_list, json_rows, of_platforms
from storage.rows import Row, timer
from storage.tables import access, artifacts, events, facts, snapshots, streams, timers

_HEAD = (
    sa.select(
        streams.c.id,
        streams.c.seq,
        snapshots.c.seq.label("snapshot_seq"),
        snapshots.c.version,
        snapshots.c.data,
        sa.select(sa.func.max(events.c.seq))
        .where(events.c.stream == streams.c.id)
        .scalar_subquery()
        .label("tail"),
    )
    .select_from(streams.outerjoin(snapshots, snapshots.c.stream == streams.c.id))
    .where(streams.c.key == sa.bindparam("key"))
)
_EVENT = tuple(events.c[name] for name in EventRow.__struct_fields__)
_LOG = (
    sa.select(*_EVENT)
    .where(
        events.c.stream == sa.bindparam("stream"),
        events.c.seq.between(sa.bindparam("first"), sa.bindparam("last")),
    )
    .order_by(events.c.seq)
)
OF_KEY = "agent:%:{}:%"
_ABANDONED = (
    sa.select(streams.c.key)
    .where(streams.c.open_turn, streams.c.lease_until <= sa.bindparam("now"))
    .order_by(streams.c.lease_until, streams.c.id)
    .limit(sa.bindparam("up_to"))
)
_STREAMS = (
    sa.select(
        streams.c.key,
        streams.c.seq,
        streams.c.session_id,
        streams.c.open_turn,
        streams.c.updated_at,
    )
    .where(sa.func.substr(streams.c.key, 1, sa.bindparam("length")) == sa.bindparam("prefix"))
    .order_by(streams.c.updated_at.desc(), streams.c.id.desc())
    .limit(sa.bindparam("up_to"))
)
_DUE = (
    sa.select(timers)
    .where(timers.c.due <= sa.bindparam("now"))
    .order_by(timers.c.due, timers.c.id)
    .limit(sa.bindparam("up_to"))
)


def load(connection: sa.Connection, codec: Codec, key: str) -> Stored:
    head = connection.execute(_HEAD, {"key": key}).first()
    if head is None:
        return Stored(None, ())
    _whole(key, head.seq, head.tail)
    state = None
    if isinstance(head.snapshot_seq, int) and head.snapshot_seq <= head.seq:
        state = snapshot(key, head.snapshot_seq, head.version, head.data)
    first = 1 if state is None else state.seq + 1
    return Stored(state, _log(connection, codec, (head.id, key), (first, head.seq)), head.id)


def log(
    connection: sa.Connection, codec: Codec, key: str, first: int, last: int | None
) -> tuple[Recorded, ...]:
    head = connection.execute(_HEAD, {"key": key}).first()
    if head is None:
        return ()
    if last is None:
        _whole(key, head.seq, head.tail)
    end = head.seq if last is None else _earlier(last, head.seq)
    return _log(connection, codec, (head.id, key), (max(first, 1), end))


def _earlier(last: int, seq: object) -> int:
    """SQLite keeps anything in a column of numbers; what is there can still be looked at."""
    return min(last, seq) if isinstance(seq, int) else last


def _whole(key: str, seq: object, tail: object) -> None:
    """Raises BrokenDataError for events beyond the end, where the next one is to be written, and
    where there is no telling."""
    if not isinstance(seq, int) or not isinstance(tail, int | None):
        raise BrokenDataError(f"{key}: ends at {seq!r}, and its newest event is {tail!r}")
    if tail is not None and tail > seq:
        raise BrokenDataError(f"{key}@{tail}: beyond the end of its log, {seq}")


def bodies(
    connection: sa.Connection, codec: Codec, dialect: DialectName, key: str, seqs: Iterable[int]
) -> tuple[Recorded, ...]:
    wanted = sorted(set(seqs))
    query = (
        sa.select(*_EVENT)
        .join(streams, streams.c.id == events.c.stream)
        .where(streams.c.key == key, events.c.seq.in_(json_rows(dialect, "seqs", int)))
        .order_by(events.c.seq)
    )
    found = connection.execute(query, {"seqs": json_list([seq] for seq in wanted)})
    return these(codec, key, [EventRow(*row) for row in found], wanted)


def these(
    codec: Codec, key: str, rows: Sequence[EventRow], wanted: Sequence[int]
) -> tuple[Recorded, ...]:
    """Raises BrokenDataError when one is missing, or cannot be read."""
    if len(rows) < len(wanted):
        missing = min(set(wanted) - {row.seq for row in rows})
        raise BrokenDataError(f"{key}@{missing}: missing from the log")
    return tuple(codec.recorded(key, row) for row in rows)


def _log(
    connection: sa.Connection, codec: Codec, stream: tuple[int, str], span: tuple[int, int]
) -> tuple[Recorded, ...]:
    """All events of the span, which is known to be a part of the log."""
    number, key = stream
    first, last = span
    rows = connection.execute(_LOG, {"stream": number, "first": first, "last": last})
    return whole_log(codec, key, [EventRow(*row) for row in rows], span)


def whole_log(
    codec: Codec, key: str, rows: Sequence[EventRow], span: tuple[int, int]
) -> tuple[Recorded, ...]:
    """Raises BrokenDataError for a gap, or for what cannot be read."""
    first, last = span
    for place, row in enumerate(rows, first):
        if row.seq != place:
            raise BrokenDataError(f"{key}@{place}: missing from the log")
    if first + len(rows) <= last:
        raise BrokenDataError(f"{key}@{first + len(rows)}: missing from the log")
    return tuple(codec.recorded(key, row) for row in rows)


def abandoned(
    connection: sa.Connection, now: datetime, limit: int, platforms: Platforms = None
) -> tuple[str, ...]:
    wanted = _ABANDONED.where(of_platforms(streams.c.key, OF_KEY, platforms))
    return tuple(connection.execute(wanted, {"now": micros(now), "up_to": limit}).scalars())


def infos(connection: sa.Connection, prefix: str, limit: int) -> tuple[StreamInfo, ...]:
    found = {"prefix": prefix, "length": len(prefix), "up_to": limit}
    return tuple(_info(dict(row)) for row in connection.execute(_STREAMS, found).mappings())


def _info(row: Row) -> StreamInfo:
    values: Row = {**row, "updated_at": moment(row["updated_at"])}
    return StreamInfo(**values)


def asides(connection: sa.Connection) -> tuple[str, ...]:
    """Of all keys, in memory: there is no index that finds the end of a text."""
    wanted = (
        sa.select(streams.c.key).where(streams.c.key.contains(":aside:")).order_by(streams.c.id)
    )
    return tuple(key for key in connection.execute(wanted).scalars() if key_of_aside(key) != key)


def due(
    connection: sa.Connection, now: datetime, limit: int, platforms: Platforms = None
) -> tuple[Timer, ...]:
    wanted = _DUE.where(of_platforms(timers.c.key, OF_KEY, platforms))
    rows = connection.execute(wanted, {"now": micros(now), "up_to": limit}).mappings()
    return tuple(timer(dict(row)) for row in rows)


def grants(connection: sa.Connection) -> tuple[AccessGrant, ...]:
    rows = connection.execute(sa.select(access).order_by(access.c.platform, access.c.user))
    return tuple(AccessGrant(*row) for row in rows)


def role(connection: sa.Connection, platform: str, user: str) -> Role | None:
    of_person = (access.c.platform == platform, access.c.user == user)
    return connection.execute(sa.select(access.c.role).where(*of_person)).scalar()


def _one(column: sa.Column[Any], key: sa.Column[Any]) -> Callable[[sa.Connection, str], str | None]:
    query = sa.select(column).where(key == sa.bindparam("name"))
    return lambda connection, name: connection.execute(query, {"name": name}).scalar()


def facts_of(connection: sa.Connection, start: str) -> dict[str, str]:
    wanted = facts.c.name.startswith(start, autoescape=True)
    rows = connection.execute(sa.select(facts.c.name, facts.c.value).where(wanted))
    # LIKE takes no heed of case on SQLite.
    return {row.name: row.value for row in rows if row.name.startswith(start)}


artifact = _one(artifacts.c.text, artifacts.c.id)
fact = _one(facts.c.value, facts.c.name)
