"""How often it was not known whether a message is out. Never changed once released."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("outbox", sa.Column("doubts", big, nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("outbox", "doubts")
