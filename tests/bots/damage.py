"""Every way in which a stored session can be broken, as SQL; it asserts nothing."""

import re
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from storage.tables import events, snapshots, streams

Damage = Callable[[sa.Connection], None]
Harm = Callable[[sa.Connection, int, int], Any]
"""What is done to a stream, by its number and the number of its newest event."""

BAD_BYTES = "7b2274797065223a2243e9ff227d"
"""A JSON object in which an é is one byte of Latin-1, and one byte is nothing at all."""
BAD_TEXT: sa.ColumnElement[str] = sa.literal_column(f"CAST(x'{BAD_BYTES}' AS TEXT)", sa.Text)
OTHER_JSON = '{"type": "TurnFinished", "turn": "seven"}'
AGES = 2**62
"""A time in microseconds that no calendar has."""


def of(key: str, harm: Harm) -> Damage:
    def damage(connection: sa.Connection) -> None:
        head = sa.select(streams.c.id, streams.c.seq).where(streams.c.key == key)
        number, seq = connection.execute(head).one()
        harm(connection, number, seq)

    return damage


def event(place: int, **changes: Any) -> Harm:
    """``place`` counts from 1, or back from the end."""

    def harm(connection: sa.Connection, stream: int, seq: int) -> None:
        at = place if place > 0 else seq + 1 + place
        row = sa.update(events).where(events.c.stream == stream, events.c.seq == at)
        connection.execute(row.values(changes))

    return harm


def stream(**changes: Any) -> Harm:
    """The key's own row."""

    def harm(connection: sa.Connection, number: int, seq: int) -> None:
        row = sa.update(streams).where(streams.c.id == number)
        connection.execute(row.values(changes))

    return harm


def gone(place: int) -> Harm:
    def harm(connection: sa.Connection, stream: int, seq: int) -> None:
        at = place if place > 0 else seq + 1 + place
        row = sa.delete(events).where(events.c.stream == stream, events.c.seq == at)
        connection.execute(row)

    return harm


def ends_early(connection: sa.Connection, stream: int, seq: int) -> None:
    """The next event would be written where one is."""
    connection.execute(sa.update(streams).where(streams.c.id == stream).values(seq=seq - 2))


def unpaired(connection: sa.Connection, stream: int, seq: int) -> None:
    """A result of a call that no reply made."""
    row = {
        "stream": stream,
        "seq": seq + 1,
        "at": 0,
        "type": "ToolFinished",
        "version": 1,
        "data": '{"type":"ToolFinished","turn":1,"step":1,"call_id":"c9","outcome":"ok",'
        '"text":"paid"}',
    }
    connection.execute(sa.insert(events).values(row))
    connection.execute(sa.update(streams).where(streams.c.id == stream).values(seq=seq + 1))


def opened_twice(connection: sa.Connection, stream: int, seq: int) -> None:
    """Each event can be read, and their row cannot be."""
    first = sa.select(events.c.type, sa.cast(events.c.data, sa.Text)).where(
        events.c.stream == stream, events.c.seq == 1
    )
    kind, data = connection.execute(first).one()
    event(4, type=kind, data=data)(connection, stream, seq)


def snapshot(**changes: Any) -> Harm:
    def harm(connection: sa.Connection, stream: int, seq: int) -> None:
        row = sa.update(snapshots).where(snapshots.c.stream == stream)
        connection.execute(row.values(changes))

    return harm


def in_snapshot(pattern: str, new: str, **changes: Any) -> Harm:
    """Other words in the place of the first in its JSON that match."""

    def harm(connection: sa.Connection, stream: int, seq: int) -> None:
        of_stream = snapshots.c.stream == stream
        stored = connection.execute(
            sa.select(sa.cast(snapshots.c.data, sa.Text)).where(of_stream)
        ).scalar_one()
        text = stored.replace(": ", ":").replace(", ", ",")
        data, found = re.subn(pattern, new, text, count=1)
        assert found, text
        connection.execute(sa.update(snapshots).where(of_stream).values(data=data, **changes))

    return harm


def no_snapshot(connection: sa.Connection, stream: int, seq: int) -> None:
    connection.execute(sa.delete(snapshots).where(snapshots.c.stream == stream))


def without_snapshot(harm: Harm) -> Harm:
    """As after a crash early in a session's life: the log alone is there."""

    def both(connection: sa.Connection, stream: int, seq: int) -> None:
        no_snapshot(connection, stream, seq)
        harm(connection, stream, seq)

    return both


LOG: dict[str, Harm] = {
    "a gap": gone(3),
    "an end that is missing": gone(-1),
    "events beyond the end": ends_early,
    "an unknown type": event(4, type="Unheard"),
    "a newer version": event(4, version=9),
    "JSON of another shape": event(4, data=OTHER_JSON),
    "JSON that is no object": event(4, data="[1, 2]"),
    "a time that cannot be": event(4, at=AGES),
    "an unpaired call": unpaired,
    "a log that does not fold": opened_twice,
}
"""On any database."""
LOG_SQLITE: dict[str, Harm] = {
    "unreadable JSON": event(4, data='{"type":"Turn'),
    "JSON in two lines": event(4, data='{"type":\n"TurnFinished"}'),
    "nothing at all": event(4, data=""),
    "bytes that are no text": event(4, data=BAD_TEXT),
    "bytes in a blob": event(4, data=sa.literal_column(f"x'{BAD_BYTES}'")),
    "a type that is no text": event(4, type=BAD_TEXT),
    "JSON without a bottom": event(4, data="[" * 100_000 + "]" * 100_000),
    "words for a time": event(4, at="noon"),
    "words for a version": event(4, version="first"),
    "words for a place": event(4, seq="fourth"),
    "words for its end": stream(seq="here"),
}
"""PostgreSQL refuses to hold these."""
SNAPSHOT: dict[str, Harm] = {
    "beyond the log": in_snapshot('"seq":[0-9]+', '"seq":999', seq=999),
    "of another place": snapshot(seq=2),
    "of another key": in_snapshot(":dm:7", ":dm:8"),
    "turns that never were": in_snapshot('"turns":[0-9]+', '"turns":99'),
    "turns that are gone": in_snapshot('"turns":[0-9]+', '"turns":0'),
    "entries outside the log": in_snapshot(r'"entries":\[{"seq":2', '"entries":[{"seq":222'),
    "of a newer version": snapshot(version=2),
    "JSON of another shape": snapshot(data='{"key": 7}'),
}
SNAPSHOT_SQLITE: dict[str, Harm] = {
    "no JSON": snapshot(data="{"),
    "bytes that are no text": snapshot(data=BAD_TEXT),
    "a number": snapshot(data=7),
    "a place that is no number": snapshot(seq="here"),
    "JSON without a bottom": snapshot(data='{"x":' * 100_000),
}
