"""Revisions of versions to come, for programs of today to meet; it runs none of them."""

import shutil
from pathlib import Path

from storage.revisions import OURS, Revisions, Terms

NEXT = f"{len(OURS.names) + 1:04}"
HEAD = f'''"""The next one."""
import sqlalchemy as sa
from alembic import op
revision = "{NEXT}"
down_revision = "{OURS.newest}"
'''
ROOM_EVERYWHERE = """
def upgrade() -> None:
    for table in sa.inspect(op.get_bind()).get_table_names():
        if table != "alembic_version":
            op.add_column(table, sa.Column("colour", sa.Text, nullable=False, server_default="red"))
            op.add_column(table, sa.Column("shade", sa.Integer))
            op.create_index(f"{table}_by_shade", table, ["shade"])
    op.create_table("paints", sa.Column("name", sa.Text, primary_key=True))

def downgrade() -> None:
    op.drop_table("paints")
    for table in sa.inspect(op.get_bind()).get_table_names():
        if table != "alembic_version":
            op.drop_index(f"{table}_by_shade", table)
            op.drop_column(table, "shade")
            op.drop_column(table, "colour")
"""
"""As wide as an addition can be: every table has more columns than a program of today knows."""


def future(
    folder: Path,
    body: str = ROOM_EVERYWHERE,
    terms: Terms | None = Terms(oldest=OURS.newest),  # noqa: B008
) -> Revisions:
    """Ours and one more, in a folder that is not there yet."""
    shutil.copytree(OURS.folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / f"versions/{NEXT}_next.py").write_text(HEAD + body)
    said = {NEXT: terms} if terms else {}
    return Revisions(folder, (*OURS.names, NEXT), {**OURS.terms, **said})
