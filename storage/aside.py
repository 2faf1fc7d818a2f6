"""A log that cannot be read is kept under another key; nothing of it is deleted."""

from collections.abc import Sequence
from datetime import datetime

import msgspec
import sqlalchemy as sa

from core.domain.keys import aside_key, aside_name
from core.errors import ConflictError, StillhereError
from storage.codec import micros
from storage.commits import Commits, Failed
from storage.rows import Prepared
from storage.tables import inbox, outbox, streams, timers


class Move(msgspec.Struct, frozen=True):
    """``stream`` is the number of the log that is moved; ``follows`` begins the next one."""

    key: str
    stream: int
    at: datetime
    follows: tuple[Prepared, ...] = ()

    @property
    def kept_as(self) -> str:
        return aside_key(self.key, self.at)


class Asides:
    def __init__(self, commits: Commits) -> None:
        self._commits = commits

    def apply(self, connection: sa.Connection, moves: Sequence[Move]) -> list[str]:
        """Raises what a commit would: it must be alone in its transaction, which then is undone.
        The counts come last of all, as in any other: who holds them waits for nobody any more."""
        for move in moves:
            failed = _move(connection, move)
            for result in self._commits.apply(connection, move.follows, failed):
                if isinstance(result, StillhereError):
                    raise result
        return [move.kept_as for move in moves]


def _move(connection: sa.Connection, move: Move) -> Failed:
    """Its promised messages are still sent, under ids that the key's next log cannot make again;
    what it had taken and not answered has failed. Its events and its snapshot go along."""
    key, kept_as, name = move.key, move.kept_as, aside_name(move.at)
    moved = connection.execute(
        sa.update(streams)
        .where(streams.c.key == key, streams.c.id == move.stream)
        .values(
            key=kept_as,
            open_turn=False,
            owner="",
            lease_until=0,
            updated_at=micros(move.at),
            owed=0,
        )
        .returning(streams.c.id)
    )
    if moved.first() is None:
        raise ConflictError(f"{key}: log {move.stream} is not there any more")
    connection.execute(sa.delete(timers).where(timers.c.key == key))
    edits = sa.case((outbox.c.edits == "", ""), else_=name + ":" + outbox.c.edits)
    connection.execute(
        sa.update(outbox)
        .where(outbox.c.key == key)
        .values(id=name + ":" + outbox.c.id, key=kept_as, edits=edits)
    )
    failed = connection.execute(
        sa.update(inbox)
        .where(inbox.c.key == key, inbox.c.outcome == "pending")
        .values(outcome="failed")
        .returning(inbox.c.platform)
    ).scalars()
    told = [(platform, key) for platform in failed]
    connection.execute(sa.update(inbox).where(inbox.c.key == key).values(key=kept_as))
    return told
