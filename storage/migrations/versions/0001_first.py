"""The first tables. Never changed once released: a change is the next revision."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _logs()
    _messages()
    _rest()


def downgrade() -> None:
    for table in (
        "facts",
        "artifacts",
        "access",
        "timers",
        "outbox",
        "inbox",
        "snapshots",
        "events",
        "streams",
    ):
        op.drop_table(table)


def _logs() -> None:
    op.create_table(
        "streams",
        sa.Column("id", _big(), primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        _number("seq"),
        _text("session_id"),
        _flag("open_turn"),
        _text("owner"),
        _number("epoch"),
        _number("lease_until"),
        _number("updated_at"),
    )
    _partial_index("streams_open", ["lease_until"], "open_turn = 1", "open_turn")
    op.create_table(
        "events",
        _stream(),
        sa.Column("seq", _big(), primary_key=True, autoincrement=False),
        _number("at"),
        _text("type"),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("session_id", sa.Text),
        sa.Column("data", _json(), nullable=False),
    )
    begins = "session_id IS NOT NULL"
    _partial_index("events_session", ["session_id"], begins, begins)
    op.create_table(
        "snapshots",
        _stream(),
        _number("seq"),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("data", _json(), nullable=False),
    )


def _messages() -> None:
    op.create_table(
        "inbox",
        sa.Column("platform", sa.Text, primary_key=True),
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("update_id", sa.Text, primary_key=True),
        _text("key"),
        _number("seq"),
        _text("outcome"),
        _number("at"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "outbox",
        sa.Column("position", _big(), primary_key=True),
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
        sa.Column("body", _json()),
        _text("error"),
        _number("created_at"),
        _number("ended_at"),
    )
    _partial_index("outbox_open", ["lane", "position"], "holds = 1", "holds")
    unsent = "state != 'sent'"
    _partial_index("outbox_unsent", ["state", "kind"], unsent, unsent)


def _rest() -> None:
    op.create_table(
        "timers",
        sa.Column("id", sa.Text, primary_key=True),
        _text("key"),
        _text("kind"),
        _number("due"),
        _text("data"),
        sqlite_with_rowid=False,
    )
    op.create_index("timers_due", "timers", ["due"])
    op.create_table(
        "access",
        sa.Column("platform", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, primary_key=True),
        _text("role"),
        sqlite_with_rowid=False,
    )
    owner = "role = 'owner'"
    _partial_index("access_owner", ["role"], owner, owner, unique=True)
    op.create_table("artifacts", sa.Column("id", sa.Text, primary_key=True), _text("text"))
    op.create_table(
        "facts",
        sa.Column("name", sa.Text, primary_key=True),
        _text("value"),
        sqlite_with_rowid=False,
    )


def _big() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _json() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(JSONB(), "postgresql")


def _stream() -> sa.Column[int]:
    target = sa.ForeignKey("streams.id")
    return sa.Column("stream", _big(), target, primary_key=True, autoincrement=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default="")


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, _big(), nullable=False, server_default="0")


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def _partial_index(
    name: str, columns: list[str], lite: str, postgres: str, *, unique: bool = False
) -> None:
    op.create_index(
        name,
        name.partition("_")[0],
        columns,
        unique=unique,
        sqlite_where=sa.text(lite),
        postgresql_where=sa.text(postgres),
    )
