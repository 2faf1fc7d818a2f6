"""What the service itself says, and who owns it no more, in SQL: each with the facts that it
stands on."""

from collections.abc import Mapping, Sequence

import msgspec
import sqlalchemy as sa

from storage.codec import clean
from storage.engine import DialectName, insert, upsert
from storage.rows import Row
from storage.tables import access, facts, outbox


class Promise(msgspec.Struct, frozen=True):
    """The rows are stored if the fact is not yet what it says."""

    fact: Row
    rows: tuple[Row, ...]


class Promises:
    def __init__(self, dialect: DialectName) -> None:
        fresh = insert(dialect, facts)
        changed = facts.c.value != fresh.excluded.value
        self._change = fresh.on_conflict_do_update(
            index_elements=[facts.c.name], set_={"value": fresh.excluded.value}, where=changed
        ).returning(facts.c.name)
        self._set = upsert(dialect, facts)
        self._outbox = sa.insert(outbox)
        self._disown = sa.delete(access).where(access.c.role == "owner")

    def keep(self, connection: sa.Connection, promises: Sequence[Promise]) -> list[bool]:
        """Whoever comes second waits for the first one's row of the fact, and finds it changed."""
        return [self._kept(connection, promise) for promise in promises]

    def _kept(self, connection: sa.Connection, promise: Promise) -> bool:
        if connection.execute(self._change, promise.fact).first() is None:
            return False
        if promise.rows:
            connection.execute(self._outbox, list(promise.rows))
        return True

    def disown(self, connection: sa.Connection, told: Mapping[str, str]) -> None:
        connection.execute(self._disown)
        connection.execute(self._set, [fact_row(*one) for one in sorted(told.items())])


def fact_row(name: str, value: str) -> Row:
    return {"name": clean(name), "value": clean(value)}
