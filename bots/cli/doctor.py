"""``stillhere doctor``: one line a thing that must work, with the remedy where it does not."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Annotated

import msgspec
import typer

from bots import platforms as platforms_package
from bots.cli.common import idle_site, open_store, prepare
from bots.cli.environment import environment
from bots.cli.ledger import account
from bots.cli.processes import process_findings, revision_finding
from bots.clock import SystemClock
from bots.findings import Finding, bad, good, of_database, of_platform
from bots.model import build_model, chosen
from bots.platforms import Health, Platform
from bots.settings import Settings
from bots.status import SIGNS_FACT
from core.domain.ledger import Ledger
from core.domain.messages import ModelReply, ModelRequest, UserMessage
from core.errors import ConfigurationError, StillhereError
from core.models.demo import DemoModel
from core.plugins import discover
from core.runtime.access import CLAIM_FACT, Access
from storage.store import SqlStore

MODEL_PATIENCE = 30.0
_DATABASE_REMEDY = (
    "Starting the service or `stillhere migrate` creates it; for PostgreSQL check DATABASE_URL"
)


def register(app: typer.Typer, summary: str) -> None:
    app.command("doctor", help=summary)(doctor)


def doctor(
    *,
    ledger: Annotated[
        bool, typer.Option("--ledger", help="Only what became of every message taken.")
    ] = False,
) -> None:
    found: dict[str, Platform] = discover(platforms_package, "PLATFORM")
    platforms = {name: one for name, one in found.items() if not one.terminal}
    try:
        settings = prepare(platforms, sys.stderr)
    except ConfigurationError as error:
        for line in str(error).splitlines():
            _tell(bad("settings", line))
        raise typer.Exit(1) from None
    logging.disable(logging.WARNING)
    work = _show_ledger(settings) if ledger else _examine(settings, platforms)
    raise typer.Exit(0 if asyncio.run(work) else 1)


async def _show_ledger(settings: Settings) -> bool:
    found = await account(settings)
    for line in found.lines:
        typer.echo(line)
    return found.balanced


def _tell(finding: Finding) -> None:
    typer.echo(f"{'ok  ' if finding.well else 'BAD '} {finding.thing}: {finding.whole}")


async def _examine(settings: Settings, platforms: Mapping[str, Platform]) -> bool:
    well = True
    async for finding in _findings(settings, platforms):
        well = well and finding.well
        _tell(finding)
    return well


async def _findings(
    settings: Settings, platforms: Mapping[str, Platform]
) -> AsyncIterator[Finding]:
    yield good("settings", "all can be read")
    signs: dict[str, Health] = {}
    for finding in await _database(settings, platforms, signs):
        yield finding
    disk = of_database(settings, environment())
    if disk.remedy:
        yield disk
    yield await _model(settings)
    for name, platform in platforms.items():
        yield await _platform(platform, signs.get(name))


async def _database(
    settings: Settings, platforms: Mapping[str, Platform], signs: dict[str, Health]
) -> tuple[Finding, ...]:
    """Fills ``signs``: how it stood with each platform when the service last wrote it down."""
    try:
        store = await open_store(settings, read_only=True)
        try:
            for name in platforms:
                if noted := await store.fact(SIGNS_FACT + name):
                    signs[name] = msgspec.json.decode(noted, type=Health)
            ledger = await store.ledger()
            return (
                await _counts(store, ledger),
                revision_finding(store),
                *await process_findings(store, SystemClock().now()),
                _accounts(ledger),
                await _owner(store),
            )
        finally:
            await store.close()
    except StillhereError as error:
        return (bad("database", f"{error}. {_DATABASE_REMEDY}"),)


async def _counts(store: SqlStore, ledger: Mapping[str, Ledger]) -> Finding:
    taken = sum(one.accepted for one in ledger.values())
    backlog = sum((await store.backlog()).values())
    return good("database", f"readable, {taken} messages taken, {backlog} not delivered")


def _accounts(ledger: Mapping[str, Ledger]) -> Finding:
    wrong = [f"{name} {one.verdict}" for name, one in ledger.items() if not one.balanced]
    if wrong:
        return bad("ledger", f"{'; '.join(wrong)}. `stillhere doctor --ledger` says more")
    pending = sum(one.pending for one in ledger.values())
    return good("ledger", f"every message is accounted for, {pending} pending")


async def _owner(store: SqlStore) -> Finding:
    access = Access(store, frozenset())
    if await access.owner():
        return good("owner", "someone owns this bot")
    code = await store.fact(CLAIM_FACT)
    remedy = f"send it `/start {code}` in a DM" if code else "start it once; it prints a code"
    return good("owner", f"nobody owns this bot yet; {remedy}")


async def _model(settings: Settings) -> Finding:
    choice = chosen(settings, environment())
    model = build_model(settings, environment(), SystemClock())
    if isinstance(model, DemoModel):
        return good("model", choice.why, choice.remedy)
    request = ModelRequest((UserMessage("Say ok."),))
    try:
        async with asyncio.timeout(MODEL_PATIENCE):
            reply = await model.complete(request, lambda text: None)
    except TimeoutError:
        return bad("model", f"{choice.name} gave no answer in {MODEL_PATIENCE:.0f} s")
    if isinstance(reply, ModelReply):
        return good("model", f"{choice.name} answers")
    remedy = reply.remedy or "check MODEL and its vendor's key"
    return bad("model", f"{choice.name}: {reply.kind} ({reply.detail})", remedy)


async def _platform(platform: Platform, noted: Health | None) -> Finding:
    try:
        adapter = platform.build(platform.given(environment()), idle_site(SystemClock()))
    except ConfigurationError as error:
        return bad(platform.name, "; ".join(str(error).splitlines()))
    if adapter is None:
        return of_platform(platform, None)
    health = await adapter.check()
    await adapter.close()
    text = f"{health.detail}; {_noted(noted)}"
    return Finding(well=health.ok, thing=platform.name, text=text)


def _noted(health: Health | None) -> str:
    if health is None:
        return "no sign of life noted yet"
    moments = (
        ("last sign of life", health.last_sign),
        ("connected since", health.connected_since),
        ("last message in", health.last_inbound),
        ("last message out", health.last_outbound),
        (f"last trouble «{health.last_error}»", health.last_error_at),
    )
    told = [f"{what} {at:%Y-%m-%d %H:%M:%S} UTC" for what, at in moments if at is not None]
    return ", ".join(told) or "no sign of life since the last start"
