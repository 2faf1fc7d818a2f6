"""``stillhere chat``: the same service with the terminal as its only platform."""

import asyncio
import os
import sys
from pathlib import Path
from typing import TextIO

import typer

from bots.cli.common import database_faults, make_data_folder, open_store, prepare
from bots.cli.environment import environment
from bots.clock import SystemClock
from bots.ground import Ground
from bots.model import chosen
from bots.platforms import console
from bots.process import serve, when_up
from bots.settings import Settings, read_settings
from core.errors import ConfigurationError

LOG_NAME = "chat.log"


def register(app: typer.Typer, summary: str) -> None:
    app.command("chat", help=summary)(chat)


def chat() -> None:
    console.mend_terminal()
    first_look = read_settings(database_faults())
    with _log_file(first_look) as log_file:
        settings = prepare({}, log_file)
        if sys.stdin.isatty():
            settings = settings.model_copy(update={"drain_seconds": 0.0})
        asyncio.run(_chat(settings))


def _log_file(settings: Settings) -> TextIO:
    """With a PostgreSQL a disk is not needed: the log is then left out where there is none."""
    path = settings.stillhere_data / LOG_NAME
    try:
        make_data_folder(settings)
        return path.open("a", encoding="utf-8")
    except (OSError, ConfigurationError) as error:
        if not settings.keeps_files:
            return Path(os.devnull).open("w", encoding="utf-8")
        if isinstance(error, ConfigurationError):
            raise
        message = f"STILLHERE_DATA: {path} cannot be written ({error.strerror}); name another"
        raise ConfigurationError(message) from error


async def _chat(settings: Settings) -> None:
    ended = asyncio.Event()
    platform = console.platform(ended)
    store = await when_up(lambda: open_store(settings))
    try:
        ground = Ground(
            settings=settings,
            environment=environment(),
            store=store,
            platforms={platform.name: platform},
            clock=SystemClock(),
        )
        _greet(settings)
        await serve(ground, None, ended, finish=not sys.stdin.isatty())
    finally:
        await store.close()


def _greet(settings: Settings) -> None:
    choice = chosen(settings, environment())
    typer.echo(f"Stillhere, model {choice.name}. {choice.why}")
    typer.echo("Write to me; /help lists the commands. Ctrl-C leaves: I keep my place.\n")
