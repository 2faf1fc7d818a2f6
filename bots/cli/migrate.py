"""``stillhere migrate``: brings the database to this version's revision, and does nothing else."""

import asyncio

import typer

from bots.settings import read_settings
from storage.migrate import migrate as migrate_database


def register(app: typer.Typer) -> None:
    app.command("migrate")(migrate)


def migrate() -> None:
    """Create or upgrade the database; a SQLite file is copied first."""
    backup = asyncio.run(migrate_database(read_settings().database))
    if backup is not None:
        typer.echo(f"The database as it was is kept in {backup}")
    typer.echo("The database is up to date.")
