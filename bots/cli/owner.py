"""``stillhere owner``: who owns the bot, and how that is taken back."""

import asyncio
import sys
from typing import Annotated

import typer

from bots import platforms as platforms_package
from bots.cli.common import prepare
from bots.clock import claim_code
from bots.platforms import Platform
from bots.settings import Settings
from core.plugins import discover
from core.runtime.access import CLAIM_FACT, Access
from core.runtime.owners_chat import PLACE_FACT
from storage.store import SqlStore

NOBODY = "Nobody owns this bot."
CLAIM = "Send it this in a direct message, and it is yours: /start {}"


def register(app: typer.Typer, summary: str) -> None:
    app.command("owner", help=summary)(owner)


def owner(
    *,
    reset: Annotated[
        bool,
        typer.Option("--reset", help="Nobody owns it any more; prints a new code for the next."),
    ] = False,
) -> None:
    found: dict[str, Platform] = discover(platforms_package, "PLATFORM")
    settings = prepare(found, sys.stderr)
    typer.echo(asyncio.run(_reset(settings) if reset else _shown(settings)))


async def _shown(settings: Settings) -> str:
    store = await SqlStore.open(settings.database, read_only=True)
    try:
        access = Access(store, frozenset())
        if who := await access.owner():
            return f"{who} owns this bot. `stillhere owner --reset` takes it back."
        code = await access.open_claim()
        return f"{NOBODY} {CLAIM.format(code)}" if code else f"{NOBODY} Start it; it prints a code."
    finally:
        await store.close()


async def _reset(settings: Settings) -> str:
    """The old code is known to whoever used it."""
    fresh = claim_code()
    store = await SqlStore.open(settings.database)
    try:
        await store.disown({CLAIM_FACT: fresh, PLACE_FACT: ""})
    finally:
        await store.close()
    return f"{NOBODY} {CLAIM.format(fresh)}"
