"""``stillhere chat``: the same service with the terminal as its only platform."""

import asyncio
import sys

import typer

from bots.app import Ground
from bots.cli.common import data_folder, environment, prepare
from bots.clock import SystemClock
from bots.model import chosen
from bots.platforms import console
from bots.process import open_store, serve
from bots.settings import Settings, read_settings

LOG_NAME = "chat.log"


def register(app: typer.Typer) -> None:
    app.command("chat")(chat)


def chat() -> None:
    """Talk to the agent here in the terminal; it goes on where it was when you come back."""
    log_path = data_folder(read_settings()) / LOG_NAME
    with log_path.open("a", encoding="utf-8") as log_file:
        settings = prepare({}, log_file)
        if sys.stdin.isatty():
            settings = settings.model_copy(update={"drain_seconds": 0.0})
        asyncio.run(_chat(settings))


async def _chat(settings: Settings) -> None:
    ended = asyncio.Event()
    platform = console.platform(ended)
    store = await open_store(settings.database)
    try:
        ground = Ground(
            settings=settings,
            environment=environment(),
            store=store,
            platforms={platform.name: platform},
            clock=SystemClock(),
        )
        _greet(settings)
        await serve(ground, None, ended)
    finally:
        await store.close()


def _greet(settings: Settings) -> None:
    choice = chosen(settings, environment())
    typer.echo(f"Stillhere, model {choice.name}. {choice.why}")
    typer.echo("Write to me; /help lists the commands. Ctrl-C leaves: I keep my place.\n")
