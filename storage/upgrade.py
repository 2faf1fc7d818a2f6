"""Runs Alembic on a connection that is given; imported only when there is something to do."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config


def upgrade(connection: sa.Connection, folder: Path) -> None:
    """To the newest revision, within the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
