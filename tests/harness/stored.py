"""All that is stored of conversations, so that it is seen whether anybody wrote; it writes
nothing."""

import sqlalchemy as sa

from storage.migrate import open_database
from storage.tables import events, inbox, outbox, streams, timers

SENT = "sent"
Rows = frozenset[tuple[object, ...]]
_KEPT = {
    "sessions": sa.select(streams.c.key, streams.c.seq, streams.c.open_turn),
    "events": sa.select(events.c.stream, events.c.seq, events.c.type),
    "inbox": sa.select(inbox.c.platform, inbox.c.update_id, inbox.c.outcome),
    "outbox": sa.select(
        outbox.c.id, outbox.c.state, outbox.c.kind, outbox.c.attempts, outbox.c.platform_id
    ),
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
    """The tables that differ, a line each. That a message was sent is a fact whoever knows it, and
    so it is that nobody knows what an edit which was cut short has made of a preview."""
    before, after = _without_news_of_sends(before, after)
    return [
        f"{name}: {_listed(rows - after[name])} became {_listed(after[name] - rows)}"
        for name, rows in before.items()
        if rows != after[name]
    ]


def _without_news_of_sends(
    before: dict[str, Rows], after: dict[str, Rows]
) -> tuple[dict[str, Rows], dict[str, Rows]]:
    new = after["outbox"] - before["outbox"]
    known = {row[0] for row in new if row[1:3] == ("unknown", "preview") or row[1] == SENT}
    news = known & {row[0] for row in before["outbox"]}
    return _but(before, news), _but(after, news)


def _but(rows: dict[str, Rows], news: set[object]) -> dict[str, Rows]:
    return {**rows, "outbox": frozenset(row for row in rows["outbox"] if row[0] not in news)}


def _listed(rows: Rows) -> list[str]:
    return sorted(map(str, rows))
