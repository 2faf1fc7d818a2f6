"""The tables of the store; never holds a query.

Times are integer microseconds UTC. JSON is text on SQLite and JSONB on PostgreSQL, and passes both
drivers as text, so that one codec reads it.
"""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

metadata = sa.MetaData()

Big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Json = sa.Text().with_variant(JSONB(), "postgresql")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default="")


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, Big, nullable=False, server_default="0")


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


streams = sa.Table(
    "streams",
    metadata,
    sa.Column("id", Big, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    _number("seq"),
    _text("session_id"),
    _flag("open_turn"),
    _text("owner"),
    _number("epoch"),
    _number("lease_until"),
    _number("updated_at"),
    _number("owed"),
)
_owing = streams.c.owed > sa.literal_column("0")
sa.Index("streams_owing", streams.c.owed, sqlite_where=_owing, postgresql_where=_owing)
sa.Index(
    "streams_open",
    streams.c.lease_until,
    sqlite_where=sa.text("open_turn = 1"),
    postgresql_where=streams.c.open_turn,
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("stream", Big, sa.ForeignKey(streams.c.id), primary_key=True, autoincrement=False),
    sa.Column("seq", Big, primary_key=True, autoincrement=False),
    _number("at"),
    _text("type"),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("session_id", sa.Text),
    sa.Column("data", Json, nullable=False),
)
"""``session_id`` is there where a session begins, so that a run can be found by its id.

An ordinary table on SQLite: rows are appended, so its pages are full and few change in a
transaction. Keyed storage (WITHOUT ROWID) splits its pages in the middle of every session, and
moves rows above 1 KB to pages of their own.
"""
sa.Index(
    "events_session",
    events.c.session_id,
    sqlite_where=events.c.session_id.is_not(None),
    postgresql_where=events.c.session_id.is_not(None),
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("stream", Big, sa.ForeignKey(streams.c.id), primary_key=True, autoincrement=False),
    _number("seq"),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("data", Json, nullable=False),
)

inbox = sa.Table(
    "inbox",
    metadata,
    sa.Column("platform", sa.Text, primary_key=True),
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("update_id", sa.Text, primary_key=True),
    _text("key"),
    _number("seq"),
    _text("outcome"),
    _number("at"),
    sqlite_with_rowid=False,
)

ledger = sa.Table(
    "ledger",
    metadata,
    sa.Column("platform", sa.Text, primary_key=True),
    sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
    _number("accepted"),
    _number("answered"),
    _number("failed"),
    _number("discarded"),
    sqlite_with_rowid=False,
)
"""Running counts of the inbox; a platform's are the sums over its shards, one of which alone means
nothing. What is pending is ``streams.owed``: from another source, so that the two can disagree."""


def _day() -> sa.Column[int]:
    return sa.Column("day", sa.Integer, primary_key=True, autoincrement=False)


spending = sa.Table(
    "spending",
    metadata,
    _day(),
    sa.Column("platform", sa.Text, primary_key=True),
    sa.Column("person", sa.Text, primary_key=True),
    *(_number(name) for name in ("prompt", "completion", "cached", "nanodollars")),
    sqlite_with_rowid=False,
)
"""Money is counted in whole billionths of a dollar, so that sums are exact."""

spending_sums = sa.Table(
    "spending_sums",
    metadata,
    _day(),
    sa.Column("platform", sa.Text, primary_key=True),
    sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
    *(_number(name) for name in ("prompt", "completion", "cached", "nanodollars")),
    sqlite_with_rowid=False,
)
"""Of all persons, in shards as the ledger is; day 0 is the sum over all days."""

spending_marks = sa.Table(
    "spending_marks",
    metadata,
    _day(),
    sa.Column("platform", sa.Text, primary_key=True),
    sa.Column("person", sa.Text, primary_key=True),
    sa.Column("what", sa.Text, primary_key=True),
    sqlite_with_rowid=False,
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("position", Big, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    _text("key"),
    _text("lane"),
    _text("kind"),
    _text("state"),
    _flag("holds"),
    _number("not_before"),
    _text("owner"),
    _number("lease_until"),
    _number("attempts"),
    _text("platform_id"),
    _text("edits"),
    sa.Column("body", Json),
    _text("error"),
    _number("created_at"),
    _number("ended_at"),
    _number("doubts"),
)
"""``holds``: later rows of the lane have to wait for this one. ``body`` goes when it is sent.
``doubts`` is how often it may have gone out, and nobody knew."""
sa.Index(
    "outbox_open",
    outbox.c.lane,
    outbox.c.position,
    sqlite_where=sa.text("holds = 1"),
    postgresql_where=outbox.c.holds,
)
_unsent = outbox.c.state != sa.literal_column("'sent'")
sa.Index(
    "outbox_unsent",
    outbox.c.state,
    outbox.c.kind,
    sqlite_where=_unsent,
    postgresql_where=_unsent,
)

timers = sa.Table(
    "timers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("key"),
    _text("kind"),
    _number("due"),
    _text("data"),
    sqlite_with_rowid=False,
)
sa.Index("timers_due", timers.c.due)

access = sa.Table(
    "access",
    metadata,
    sa.Column("platform", sa.Text, primary_key=True),
    sa.Column("user", sa.Text, primary_key=True),
    _text("role"),
    sqlite_with_rowid=False,
)
_owner = access.c.role == sa.literal_column("'owner'")
sa.Index("access_owner", access.c.role, unique=True, sqlite_where=_owner, postgresql_where=_owner)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    _text("owner"),
    _number("epoch"),
    _number("lease_until"),
    sqlite_with_rowid=False,
)
"""Of what is no session, such as a bot's token. ``epoch`` counts how often it changed hands."""

artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _text("text"),
)

files = sa.Table(
    "files",
    metadata,
    sa.Column("sha", sa.Text, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""Empty on SQLite, which has them in a folder beside it."""

facts = sa.Table(
    "facts",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    _text("value"),
    sqlite_with_rowid=False,
)
