"""All that is stored of conversations, so that it is seen whether anybody wrote; it writes
nothing."""

import sqlalchemy as sa

from storage.migrate import open_database
from storage.tables import events, inbox, outbox, streams, timers

Rows = frozenset[tuple[object, ...]]
_KEPT = {
    "sessions": sa.select(streams.c.key, streams.c.seq, streams.c.open_turn),
    "events": sa.select(events.c.stream, events.c.seq, events.c.type),
    "inbox": sa.select(inbox.c.platform, inbox.c.update_id, inbox.c.outcome),
    "outbox": sa.select(outbox.c.id, outbox.c.state, outbox.c.attempts, outbox.c.platform_id),
    "timers": sa.select(timers.c.id, timers.c.due),
}


async def stored(url: str) -> dict[str, Rows]:
    def look(connection: sa.Connection) -> dict[str, Rows]:
        return {
            name: frozenset(tuple(row) for row in connection.execute(query))
            for name, query in _KEPT.items()
        }

    database = await open_database(url, read_only=True)
    try:
        return await database.read(look)
    finally:
        await database.close()


def changes(before: dict[str, Rows], after: dict[str, Rows]) -> list[str]:
    """The rows that differ, a line each."""
    return [
        f"{name}: {_listed(rows - after[name])} became {_listed(after[name] - rows)}"
        for name, rows in before.items()
        if rows != after[name]
    ]


def _listed(rows: Rows) -> list[str]:
    return sorted(map(str, rows))
