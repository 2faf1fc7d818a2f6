"""``stillhere run``: all configured platforms, with health on ``PORT``."""

import asyncio
import sys

import typer

from bots import platforms as platforms_package
from bots.app import Ground
from bots.cli.common import environment, prepare
from bots.clock import SystemClock
from bots.platforms import Platform
from bots.process import open_store, serve
from bots.settings import Settings
from bots.web import bind
from core.plugins import discover


def register(app: typer.Typer) -> None:
    app.command("run")(run)


def run() -> None:
    """Serve all configured platforms until SIGTERM or Ctrl-C."""
    found: dict[str, Platform] = discover(platforms_package, "PLATFORM")
    platforms = {name: one for name, one in found.items() if not one.terminal}
    settings = prepare(platforms, sys.stderr)
    asyncio.run(_run(settings, platforms))


async def _run(settings: Settings, platforms: dict[str, Platform]) -> None:
    with bind(settings.port) as listener:
        store = await open_store(settings.database)
        try:
            ground = Ground(
                settings=settings,
                environment=environment(),
                store=store,
                platforms=platforms,
                clock=SystemClock(),
            )
            await serve(ground, listener, asyncio.Event())
        finally:
            await store.close()
