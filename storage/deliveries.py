"""The outbox in SQL: which row may go next, and what became of it; never sends."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from core.domain.keys import platform_of_lane
from core.domain.messages import OutboxMessage
from core.ports import Claimed, Lease, Platforms, PreviewState
from storage.codec import clean, micros
from storage.engine import DialectName, first_part, insert, json_list, json_rows, of_platforms
from storage.rows import Row, claimed, preview_claimed, preview_row
from storage.tables import outbox, streams

OF_LANE = "{}:%"
_holds = outbox.c.holds
_is_message = outbox.c.kind != "preview"
_doubted: Row = {
    "state": "unknown",
    "holds": sa.or_(_is_message, outbox.c.state == "sending"),
    "doubts": outbox.c.doubts + 1,
}
"""A preview that was out, and of which nobody knows what it shows, is not asked for any more."""
_preview = outbox.alias("preview")
_ROW = (
    outbox.c.position,
    outbox.c.id,
    outbox.c.body,
    outbox.c.attempts,
    outbox.c.created_at,
    outbox.c.doubts,
    sa.select(_preview.c.platform_id)
    .where(_preview.c.id == outbox.c.edits, _preview.c.state == "sent")
    .scalar_subquery()
    .label("preview_id"),
)
_FIRST_OF_LANES = sa.select(sa.func.min(outbox.c.position)).where(_holds).group_by(outbox.c.lane)
_CLAIMABLE = (
    sa.select(*_ROW)
    .where(
        outbox.c.position.in_(_FIRST_OF_LANES),
        outbox.c.state == "pending",
        outbox.c.not_before <= sa.bindparam("now"),
    )
    .order_by(outbox.c.position)
    .limit(sa.bindparam("up_to"))
    .with_for_update(skip_locked=True, of=outbox)
)
_CLAIM = (
    sa.update(outbox)
    .where(outbox.c.position == sa.bindparam("of_position"))
    .values(
        state="sending",
        owner=sa.bindparam("owner"),
        lease_until=sa.bindparam("lease_until"),
        attempts=outbox.c.attempts + 1,
    )
)
_ABANDON = (
    sa.update(outbox)
    .where(_holds, outbox.c.state == "sending", outbox.c.lease_until <= sa.bindparam("now"))
    .values(**_doubted, error="the sender went away")
)
_UNKNOWN = (
    sa.select(*_ROW)
    .where(_holds, outbox.c.state == "unknown")
    # The sum keeps SQLite from walking through the whole table in this order.
    .order_by(outbox.c.position + 0)
    .limit(sa.bindparam("up_to"))
)
_unsent = (outbox.c.state != sa.literal_column("'sent'"), _is_message)
_BACKLOG = sa.select(outbox.c.state, sa.func.count()).where(*_unsent).group_by(outbox.c.state)
_of_id = outbox.c.id == sa.bindparam("of_id")
_of_position = outbox.c.position == sa.bindparam("of_position")
_of_claim = sa.and_(_of_position, outbox.c.attempts == sa.bindparam("of_attempts"))
"""The claim that was made, and none after it."""
_under_way = sa.or_(outbox.c.state == "sending", outbox.c.state == "unknown")
"""No ``in_``: SQLAlchemy cannot expand it in a statement that is executed for many rows at once."""
_SENT = (
    sa.update(outbox)
    .where(_of_position, outbox.c.state != "sent")
    .values(
        state="sent",
        holds=False,
        body=sa.null(),
        error="",
        platform_id=sa.bindparam("to_platform_id"),
        ended_at=sa.bindparam("at"),
    )
)
_RETRY = (
    sa.update(outbox)
    .where(_of_claim, _under_way)
    .values(
        state="pending",
        holds=_is_message,
        not_before=sa.bindparam("at"),
        error=sa.bindparam("why"),
    )
)
_GIVE_UP = (
    sa.update(outbox)
    .where(_of_claim, _under_way)
    .values(state="failed", holds=False, error=sa.bindparam("why"), ended_at=sa.bindparam("at"))
)
_NOT_KNOWN = (
    sa.update(outbox)
    .where(
        _of_claim,
        sa.or_(outbox.c.state == "sending", sa.and_(outbox.c.state == "sent", ~_is_message)),
    )
    .values(**_doubted, error=sa.bindparam("why"))
)
_OLD_PREVIEW = (
    sa.select(
        outbox.c.position,
        outbox.c.attempts,
        outbox.c.state,
        outbox.c.created_at,
        outbox.c.platform_id,
    )
    .where(_of_id)
    .with_for_update()
)
_OWNER = (
    sa.select(streams.c.owner)
    .where(streams.c.key == sa.bindparam("of_key"))
    .with_for_update(read=True)
)
_OTHERS = (
    sa.select(outbox.c.id)
    .where(_holds, outbox.c.lane == sa.bindparam("of_lane"), outbox.c.id != sa.bindparam("of_id"))
    .limit(1)
)
_REOPEN = (
    sa.update(outbox)
    .where(_of_position)
    .values(
        state="sending",
        holds=True,
        owner=sa.bindparam("owner"),
        lease_until=sa.bindparam("lease_until"),
        attempts=outbox.c.attempts + 1,
    )
)


def claim(
    connection: sa.Connection,
    now: datetime,
    lease: Lease,
    limit: int,
    platforms: Platforms = None,
) -> list[Claimed]:
    wanted = _CLAIMABLE.where(of_platforms(outbox.c.lane, OF_LANE, platforms))
    rows = connection.execute(wanted, {"now": micros(now), "up_to": limit}).all()
    until = micros(lease.until)
    if rows:
        connection.execute(
            _CLAIM,
            [
                {"of_position": row.position, "owner": lease.owner, "lease_until": until}
                for row in rows
            ],
        )
    return _readable(connection, rows, begun=1)


def abandon(connection: sa.Connection, now: datetime) -> None:
    connection.execute(_ABANDON, {"now": micros(now)})


def doubtful(
    connection: sa.Connection,
    dialect: DialectName,
    limit: int,
    platforms: Platforms = None,
    beside: Collection[int] = (),
) -> list[Claimed]:
    others = outbox.c.position.not_in(json_rows(dialect, "beside", int))
    wanted = _UNKNOWN.where(of_platforms(outbox.c.lane, OF_LANE, platforms), others)
    given = {"up_to": limit, "beside": json_list([place] for place in beside)}
    return _readable(connection, connection.execute(wanted, given).all())


def _readable(connection: sa.Connection, rows: Iterable[Any], begun: int = 0) -> list[Claimed]:
    """A body that no version can have meant holds up nobody: its row has failed, and is kept."""
    found: list[Claimed] = []
    for row in rows:
        try:
            found.append(claimed(row._mapping, row.preview_id, row.attempts + begun))
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
            place = {"of_position": row.position, "of_attempts": row.attempts + begun}
            connection.execute(_GIVE_UP, {**place, "why": "unreadable", "at": 0})
    return found


def open_preview(
    connection: sa.Connection,
    dialect: DialectName,
    message: OutboxMessage,
    lease: Lease,
    at: datetime,
) -> tuple[PreviewState, Claimed | None]:
    """One that is pending again was proved not to be out: it is opened anew."""
    row = preview_row(message, lease, at)
    if lease.held and not _is_held(connection, message.key, lease.owner):
        return "lost", None
    found = connection.execute(_OLD_PREVIEW, {"of_id": row["id"]}).mappings().first()
    old: Row | None = dict(found) if found else None
    if old is not None and old["state"] == "sent":
        return "sent", preview_claimed(message, old)
    if old is not None and old["state"] != "pending":
        return "lost", None
    if connection.execute(_OTHERS, {"of_id": row["id"], "of_lane": row["lane"]}).first():
        return "held", None
    if old is None:
        opening = insert(dialect, outbox).returning(outbox.c.position)
        row["position"] = connection.execute(opening, row).scalar_one()
    else:
        kept = {name: old[name] for name in ("position", "created_at")}
        row |= kept | {"attempts": old["attempts"] + 1}
        again = {"owner": lease.owner, "lease_until": row["lease_until"]}
        connection.execute(_REOPEN, {**again, "of_position": old["position"]})
    return "opened", preview_claimed(message, row)


def _is_held(connection: sa.Connection, key: str, owner: str) -> bool:
    """Until the end of the transaction, since nobody else can take it before."""
    return connection.execute(_OWNER, {"of_key": clean(key)}).scalar() == owner


def backlog(connection: sa.Connection) -> dict[str, int]:
    return {row[0]: row[1] for row in connection.execute(_BACKLOG)}


def undelivered(connection: sa.Connection, dialect: DialectName) -> dict[str, dict[str, int]]:
    platform = first_part(dialect, outbox.c.lane).label("platform")
    query = sa.select(platform, outbox.c.state, sa.func.count()).where(*_unsent)
    found: dict[str, dict[str, int]] = {}
    for row in connection.execute(query.group_by(sa.literal_column("platform"), outbox.c.state)):
        found.setdefault(platform_of_lane(row[0]), {})[row[1]] = row[2]
    return found


def sent_row(row: Claimed, platform_id: str, at: datetime) -> Row:
    return {
        "of_position": row.position,
        "to_platform_id": clean(platform_id),
        "at": micros(at),
    }


def ended_row(row: Claimed, error: str, at: datetime) -> Row:
    return {**doubtful_row(row, error), "at": micros(at)}


def doubtful_row(row: Claimed, error: str) -> Row:
    return {"of_position": row.position, "of_attempts": row.attempts, "why": clean(error)}


def mark_sent(connection: sa.Connection, rows: Sequence[Row]) -> list[None]:
    return _update(connection, _SENT, rows)


def mark_retry(connection: sa.Connection, rows: Sequence[Row]) -> list[None]:
    return _update(connection, _RETRY, rows)


def mark_failed(connection: sa.Connection, rows: Sequence[Row]) -> list[None]:
    return _update(connection, _GIVE_UP, rows)


def mark_unknown(connection: sa.Connection, rows: Sequence[Row]) -> list[None]:
    return _update(connection, _NOT_KNOWN, rows)


def _update(connection: sa.Connection, statement: sa.Update, rows: Sequence[Row]) -> list[None]:
    connection.execute(statement, list(rows))
    return [None] * len(rows)
