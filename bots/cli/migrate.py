"""``stillhere migrate``: brings the database to this version's revision, and does nothing else; a
database that is not up yet is waited for."""

import asyncio
import sys

import typer

from bots.cli.common import prepare
from bots.process import RELEASE_PATIENCE, when_up
from storage.migrate import migrate as migrate_database


def register(app: typer.Typer, summary: str) -> None:
    app.command("migrate", help=summary)(migrate)


def migrate() -> None:
    settings = prepare({}, sys.stderr)
    waiting = when_up(lambda: migrate_database(settings.database), RELEASE_PATIENCE)
    backup = asyncio.run(waiting)
    if backup is not None:
        typer.echo(f"The database as it was is kept in {backup}")
    typer.echo("The database is up to date.")
