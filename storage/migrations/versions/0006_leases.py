"""Who of several processes takes a platform's messages. Never changed once released."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False, server_default=""),
        _number("epoch"),
        _number("lease_until"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("leases")


def _number(name: str) -> sa.Column[int]:
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column(name, big, nullable=False, server_default="0")
