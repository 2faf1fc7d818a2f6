"""What models cost, by person and day, and what holds for a day. Never changed once released."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_COUNTS = ("prompt", "completion", "cached", "nanodollars")


def upgrade() -> None:
    op.create_table(
        "spending",
        _day(),
        sa.Column("platform", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, primary_key=True),
        *map(_number, _COUNTS),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "spending_sums",
        _day(),
        sa.Column("platform", sa.Text, primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        *map(_number, _COUNTS),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "spending_marks",
        _day(),
        sa.Column("platform", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, primary_key=True),
        sa.Column("what", sa.Text, primary_key=True),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    for table in ("spending_marks", "spending_sums", "spending"):
        op.drop_table(table)


def _day() -> sa.Column[int]:
    return sa.Column("day", sa.Integer, primary_key=True, autoincrement=False)


def _number(name: str) -> sa.Column[int]:
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column(name, big, nullable=False, server_default="0")
