"""``stillhere doctor``: one line a thing that must work, with the remedy where it does not."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Mapping

import msgspec
import typer

from bots import platforms as platforms_package
from bots.cli.common import environment, prepare
from bots.clock import SystemClock
from bots.model import build_model, chosen
from bots.platforms import Adapter, Platform, Site
from bots.settings import Settings
from core.domain.messages import Inbound, ModelReply, ModelRequest, UserMessage
from core.errors import ConfigurationError, StillhereError, TransientError
from core.models.demo import DemoModel
from core.plugins import discover
from storage.store import SqlStore

MODEL_PATIENCE = 30.0


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    well: bool
    thing: str
    text: str


def good(thing: str, text: str) -> Finding:
    return Finding(well=True, thing=thing, text=text)


def bad(thing: str, text: str) -> Finding:
    return Finding(well=False, thing=thing, text=text)


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor() -> None:
    """Check settings, database, model and platforms; exit 1 if anything is wrong."""
    found: dict[str, Platform] = discover(platforms_package, "PLATFORM")
    platforms = {name: one for name, one in found.items() if not one.terminal}
    settings = prepare(platforms, sys.stderr)
    logging.disable(logging.WARNING)
    well = asyncio.run(_examine(settings, platforms))
    raise typer.Exit(0 if well else 1)


async def _examine(settings: Settings, platforms: Mapping[str, Platform]) -> bool:
    well = True
    async for finding in _findings(settings, platforms):
        well = well and finding.well
        typer.echo(f"{'ok  ' if finding.well else 'BAD '} {finding.thing}: {finding.text}")
    return well


async def _findings(
    settings: Settings, platforms: Mapping[str, Platform]
) -> AsyncIterator[Finding]:
    yield good("settings", "all can be read")
    database, signs = await _database(settings, platforms)
    yield database
    yield await _model(settings)
    for name, platform in platforms.items():
        yield await _platform(platform, settings, signs.get(name))


async def _database(
    settings: Settings, platforms: Mapping[str, Platform]
) -> tuple[Finding, dict[str, str]]:
    try:
        store = await SqlStore.open(settings.database, read_only=True)
    except StillhereError as error:
        remedy = "`stillhere migrate` creates it; for PostgreSQL check DATABASE_URL"
        return bad("database", f"{error}. {remedy}"), {}
    try:
        ledger = await store.ledger()
        backlog = await store.backlog()
        signs = {name: await store.fact(f"last sign of {name}") for name in platforms}
    finally:
        await store.close()
    taken = sum(sum(counts.values()) for counts in ledger.values())
    text = f"readable, {taken} messages taken, {sum(backlog.values())} not delivered"
    return good("database", text), {n: sign for n, sign in signs.items() if sign}


async def _model(settings: Settings) -> Finding:
    choice = chosen(settings, environment())
    model = build_model(settings, environment(), SystemClock())
    if isinstance(model, DemoModel):
        return good("model", choice.why)
    request = ModelRequest((UserMessage("Say ok."),))
    try:
        async with asyncio.timeout(MODEL_PATIENCE):
            reply = await model.complete(request, lambda text: None)
    except TimeoutError:
        return bad("model", f"{choice.name} gave no answer in {MODEL_PATIENCE:.0f} s")
    if isinstance(reply, ModelReply):
        return good("model", f"{choice.name} answers")
    remedy = "check MODEL and its vendor's key"
    return bad("model", f"{choice.name}: {reply.kind} ({reply.detail}); {remedy}")


async def _platform(platform: Platform, settings: Settings, sign: str | None) -> Finding:
    adapter = _built(platform, settings)
    if isinstance(adapter, str):
        return bad(platform.name, adapter)
    if adapter is None:
        names = ", ".join(variable.name for variable in platform.variables[:1])
        return good(platform.name, f"not set up ({names} is not set)")
    health = adapter.health()
    heard = f"last heard from {sign}" if sign else "never heard from yet"
    return good(platform.name, f"{health.detail}; {heard}")


def _built(platform: Platform, settings: Settings) -> Adapter | str | None:
    async def refuse(inbound: Inbound) -> None:
        raise TransientError("the doctor takes no messages")

    site = Site(
        accept=refuse, clock=SystemClock(), commands=(), public_url=settings.public_url.rstrip("/")
    )
    known = environment()
    values = {v.name: known[v.name] for v in platform.variables if known.get(v.name)}
    try:
        return platform.build(values, site)
    except ConfigurationError as error:
        return str(error)
