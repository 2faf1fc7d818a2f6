"""Runs Alembic on a connection that is given; imported only when there is something to do."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config


def upgrade(connection: sa.Connection, folder: Path, revision: str) -> None:
    """Within the connection's transaction."""
    command.upgrade(_config(connection, folder), revision)


def downgrade(connection: sa.Connection, folder: Path, revision: str) -> None:
    """Within the connection's transaction."""
    command.downgrade(_config(connection, folder), revision)


def _config(connection: sa.Connection, folder: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
