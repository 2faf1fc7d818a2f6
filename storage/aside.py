"""A log that cannot be read is kept under another key; nothing of it is deleted."""

from datetime import datetime

import sqlalchemy as sa

from core.domain.keys import aside_key, aside_name
from storage.codec import micros
from storage.engine import DialectName
from storage.ledger import Moves, adding
from storage.tables import inbox, outbox, streams, timers


def move_aside(connection: sa.Connection, dialect: DialectName, key: str, at: datetime) -> str:
    """Its promised messages are still sent, under ids that the key's next log cannot make again;
    what it had taken and not answered has failed. Its events and its snapshot go along."""
    name = aside_name(at)
    kept_as = aside_key(key, at)
    connection.execute(
        sa.update(streams)
        .where(streams.c.key == key)
        .values(
            key=kept_as, open_turn=False, owner="", lease_until=0, updated_at=micros(at), owed=0
        )
    )
    connection.execute(sa.delete(timers).where(timers.c.key == key))
    edits = sa.case((outbox.c.edits == "", ""), else_=name + ":" + outbox.c.edits)
    connection.execute(
        sa.update(outbox)
        .where(outbox.c.key == key)
        .values(id=name + ":" + outbox.c.id, key=kept_as, edits=edits)
    )
    _fail_pending(connection, dialect, key)
    connection.execute(sa.update(inbox).where(inbox.c.key == key).values(key=kept_as))
    return kept_as


def _fail_pending(connection: sa.Connection, dialect: DialectName, key: str) -> None:
    failed = connection.execute(
        sa.update(inbox)
        .where(inbox.c.key == key, inbox.c.outcome == "pending")
        .values(outcome="failed")
        .returning(inbox.c.platform)
    ).scalars()
    moves = Moves({})
    for platform in failed:
        moves.move(platform, key, "failed")
    if rows := moves.rows():
        connection.execute(adding(dialect), rows)
