"""``stillhere migrate``: brings the database to this version's revision, and does nothing else."""

import asyncio

import typer

from bots.settings import read_settings
from storage.migrate import migrate as migrate_database


def register(app: typer.Typer, summary: str) -> None:
    app.command("migrate", help=summary)(migrate)


def migrate() -> None:
    backup = asyncio.run(migrate_database(read_settings().database))
    if backup is not None:
        typer.echo(f"The database as it was is kept in {backup}")
    typer.echo("The database is up to date.")
