"""Stored rows as they are, for copying a log out; never decodes what is in them."""

from typing import Any

import sqlalchemy as sa

from core.ports import RawHead, RawRow
from storage.tables import events, snapshots, streams

SNAPSHOT = ("seq", "version", "data")
_BEFORE_ALL = -(2**63)
_STREAM = sa.select(
    streams,
    sa.select(sa.func.max(events.c.seq))
    .where(events.c.stream == streams.c.id)
    .scalar_subquery()
    .label("tail"),
).where(streams.c.key == sa.bindparam("of_key"))
_SNAPSHOT = sa.select(*(snapshots.c[name] for name in SNAPSHOT)).where(
    snapshots.c.stream == sa.bindparam("stream")
)
_EVENTS = (
    sa.select(*(column for column in events.c if column is not events.c.stream))
    .join(streams, streams.c.id == events.c.stream)
    .where(streams.c.key == sa.bindparam("of_key"), events.c.seq > sa.bindparam("after"))
    .order_by(events.c.seq)
    .limit(sa.bindparam("up_to"))
)


def head(connection: sa.Connection, key: str) -> RawHead | None:
    found = connection.execute(_STREAM, {"of_key": key}).mappings().first()
    if found is None:
        return None
    stream: dict[str, Any] = dict(found)
    number, tail = stream.pop("id"), stream.pop("tail")
    snapshot = connection.execute(_SNAPSHOT, {"stream": number}).mappings().first()
    return RawHead(stream, dict(snapshot) if snapshot else None, tail or 0, number)


def events_of(
    connection: sa.Connection, key: str, after: int | None, limit: int
) -> tuple[RawRow, ...]:
    asked = {"of_key": key, "after": _BEFORE_ALL if after is None else after, "up_to": limit}
    return tuple(dict(row) for row in connection.execute(_EVENTS, asked).mappings())
