"""``stillhere run``: all configured platforms, with health on ``PORT``."""

import asyncio
import sys

import typer

from bots import platforms as platforms_package
from bots.cli.common import make_data_folder, open_store, platform_faults, prepare
from bots.cli.environment import environment
from bots.clock import SystemClock
from bots.ground import Ground
from bots.platforms import Platform
from bots.process import run_on
from bots.settings import Settings
from bots.watch import build_watch
from bots.web import bind
from core.plugins import discover
from storage.store import SqlStore


def register(app: typer.Typer, summary: str) -> None:
    app.command("run", help=summary)(run)


def run() -> None:
    found: dict[str, Platform] = discover(platforms_package, "PLATFORM")
    platforms = {name: one for name, one in found.items() if not one.terminal}
    settings = prepare(platforms, sys.stderr, platform_faults(platforms, SystemClock()))
    if settings.keeps_files:
        make_data_folder(settings)
    asyncio.run(_run(settings, platforms))


async def _run(settings: Settings, platforms: dict[str, Platform]) -> None:
    watch = build_watch(environment())

    def ground_of(store: SqlStore) -> Ground:
        return Ground(
            settings=settings,
            environment=environment(),
            store=store,
            platforms=platforms,
            clock=SystemClock(),
            watch=watch,
        )

    with bind(settings.port) as listener:
        await run_on(lambda: open_store(settings, telemetry=watch), ground_of, listener)
