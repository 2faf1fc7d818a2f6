"""Running counts of what became of messages, moved with the messages; it never counts the inbox."""

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from core.domain.events import MessageReceived
from core.domain.keys import platform_of
from core.domain.ledger import Ledger
from core.errors import BrokenDataError
from core.ports import InboxId, Outcome, Unowed
from storage.codec import moment
from storage.engine import DialectName, insert
from storage.rows import Prepared, Row
from storage.tables import events, inbox, ledger, streams

SHARDS = 16
"""Rows a platform, so that processes that share a database seldom wait for one another's."""
_COUNTS = ("accepted", "answered", "failed", "discarded")
_NONE = sa.literal_column("0", sa.BigInteger)
_READ = sa.union_all(
    sa.select(ledger.c.platform, *(ledger.c[name] for name in _COUNTS), _NONE),
    # Written out, as the index has it.
    sa.select(streams.c.key, _NONE, _NONE, _NONE, _NONE, streams.c.owed).where(
        streams.c.owed > sa.literal_column("0")
    ),
)
"""One statement, so that it is of one moment on every database."""
MESSAGE = MessageReceived.__name__
MOST_WAITING = 200
"""Sessions that are asked how long their user waits: a statement each."""
_OWING = (
    sa.select(streams.c.id, streams.c.key, streams.c.owed, streams.c.updated_at)
    .where(streams.c.owed > sa.literal_column("0"))
    .order_by(streams.c.updated_at)
    .limit(MOST_WAITING)
)
_MESSAGE_FROM_LAST = (
    sa.select(events.c.at)
    .where(events.c.stream == sa.bindparam("of_stream"), events.c.type == MESSAGE)
    .order_by(events.c.seq.desc())
    .offset(sa.bindparam("after"))
    .limit(1)
)
"""By the primary key, from the end of the log: what is owed is not far from there."""
_open = (
    sa.select(inbox.c.key, sa.func.count().label("many"))
    .where(inbox.c.outcome == "pending")
    .group_by(inbox.c.key)
    .subquery("open")
)
_UNOWED = (
    sa.select(inbox.c.platform, inbox.c.update_id, inbox.c.key, inbox.c.at)
    .join(_open, _open.c.key == inbox.c.key)
    .outerjoin(streams, streams.c.key == inbox.c.key)
    .where(inbox.c.outcome == "pending", _open.c.many > sa.func.coalesce(streams.c.owed, 0))
    .order_by(inbox.c.at, inbox.c.platform, inbox.c.account, inbox.c.update_id)
    .limit(sa.bindparam("up_to"))
)


class Moves:
    """What one transaction changes, added up. ``known`` are the outcomes that were stored before
    it; a message that is in neither is unknown, and settling it moves nothing."""

    def __init__(self, known: Mapping[InboxId, Outcome]) -> None:
        self._outcomes = dict(known)
        self._counts: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)

    def add(self, prepared: Prepared) -> None:
        key = prepared.commit.key
        for row in prepared.inbox:
            taken = InboxId(row["platform"], row["account"], row["update_id"])
            self._outcomes[taken] = row["outcome"]
            self.move(taken.platform, key, "accepted")
            self.move(taken.platform, key, row["outcome"])
        for row in prepared.settled:
            settled = settled_id(row)
            before = self._outcomes.get(settled)
            if before is not None:
                self._outcomes[settled] = row["outcome"]
                self.move(settled.platform, key, before, -1)
                self.move(settled.platform, key, row["outcome"])

    def move(self, platform: str, key: str, count: str, by: int = 1) -> None:
        """What is pending is not counted: the sessions know it."""
        if count != "pending":
            self._counts[platform, shard_of(key)][count] += by

    def rows(self) -> list[Row]:
        """In one order in every process, so that two of them cannot wait for each other."""
        return [
            {"platform": platform, "shard": shard, **{name: counts[name] for name in _COUNTS}}
            for (platform, shard), counts in sorted(self._counts.items())
            if any(counts.values())
        ]


def settled_id(row: Row) -> InboxId:
    return InboxId(row["of_platform"], row["of_account"], row["of_update_id"])


def shard_of(key: str) -> int:
    return zlib.crc32(key.encode(errors="surrogatepass")) % SHARDS


def adding(dialect: DialectName) -> sa.Insert:
    """For the rows of ``Moves``."""
    statement = insert(dialect, ledger)
    return statement.on_conflict_do_update(
        index_elements=[ledger.c.platform, ledger.c.shard],
        set_={name: ledger.c[name] + statement.excluded[name] for name in _COUNTS},
    )


def read(connection: sa.Connection) -> dict[str, Ledger]:
    return added_up(map(_part, connection.execute(_READ)))


def _part(row: sa.Row[Any]) -> tuple[str, Ledger]:
    name, accepted, answered, failed, discarded, owed = tuple(row)
    if not isinstance(owed, int):
        raise BrokenDataError(f"{name}: owes {owed!r}")
    if owed:
        return platform_of(name), Ledger(pending=owed)
    return name, Ledger(accepted=accepted, answered=answered, failed=failed, discarded=discarded)


def added_up(parts: Iterable[tuple[str, Ledger]]) -> dict[str, Ledger]:
    found: defaultdict[str, Ledger] = defaultdict(Ledger)
    for platform, part in parts:
        found[platform] += part
    return dict(sorted(found.items()))


def counted(row: Row) -> tuple[str, Ledger]:
    return row["platform"], Ledger(**{name: row[name] for name in _COUNTS})


def waiting_since(connection: sa.Connection) -> dict[str, datetime]:
    """What a session owes are its newest messages: they are answered in order."""
    waits: list[tuple[str, int]] = []
    for stream, key, owed, updated_at in connection.execute(_OWING).all():
        wanted = {"of_stream": stream, "after": owed - 1}
        found = connection.execute(_MESSAGE_FROM_LAST, wanted).scalar()
        waits.append((key, updated_at if found is None else found))
    return earliest(waits)


def earliest(waits: Iterable[tuple[str, int]]) -> dict[str, datetime]:
    """By platform; of keys with the microseconds of a message."""
    found: dict[str, int] = {}
    for key, at in waits:
        platform = platform_of(key)
        found[platform] = min(at, found.get(platform, at))
    return {platform: moment(at) for platform, at in sorted(found.items())}


def unowed(connection: sa.Connection, limit: int) -> tuple[Unowed, ...]:
    return tuple(
        Unowed(platform=row.platform, update_id=row.update_id, key=row.key, since=moment(row.at))
        for row in connection.execute(_UNOWED, {"up_to": limit})
    )
