"""Counts of what became of messages, and what each session owes. Never changed once released."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_COUNTED = """
INSERT INTO ledger (platform, shard, accepted, answered, failed, discarded)
SELECT
    platform,
    0,
    count(*),
    sum(CASE WHEN outcome = 'answered' THEN 1 ELSE 0 END),
    sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END),
    sum(CASE WHEN outcome = 'discarded' THEN 1 ELSE 0 END)
FROM inbox
GROUP BY platform
"""
_OWED = """
UPDATE streams SET owed = waiting.many
FROM (
    SELECT key, count(*) AS many FROM inbox WHERE outcome = 'pending' GROUP BY key
) AS waiting
WHERE waiting.key = streams.key
"""
"""The inbox is the best that is known of the past; from now on the sessions say it themselves."""


def upgrade() -> None:
    op.create_table(
        "ledger",
        sa.Column("platform", sa.Text, primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        *(_number(name) for name in ("accepted", "answered", "failed", "discarded")),
        sqlite_with_rowid=False,
    )
    op.add_column("streams", _number("owed"))
    op.create_index(
        "streams_owing",
        "streams",
        ["owed"],
        sqlite_where=sa.text("owed > 0"),
        postgresql_where=sa.text("owed > 0"),
    )
    op.execute(_COUNTED)
    op.execute(_OWED)


def downgrade() -> None:
    op.drop_index("streams_owing", "streams")
    op.drop_column("streams", "owed")
    op.drop_table("ledger")


def _number(name: str) -> sa.Column[int]:
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column(name, big, nullable=False, server_default="0")
