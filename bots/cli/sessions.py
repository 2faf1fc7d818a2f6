"""``stillhere sessions``: looks at stored conversations, also while the service runs."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import msgspec
import typer

from bots.cli.common import open_store
from bots.clock import SystemClock
from bots.settings import read_settings
from core.domain.events import Recorded
from core.domain.fold import fold
from core.domain.state import SessionState
from core.errors import BrokenDataError
from storage.bundle_check import check
from storage.bundle_export import Request, export
from storage.store import SqlStore

Result = TypeVar("Result")
Key = Annotated[str, typer.Argument(help="As `stillhere sessions list` shows it.")]


def register(app: typer.Typer, summary: str) -> None:
    group = typer.Typer(help=summary, no_args_is_help=True)
    group.command("list")(list_sessions)
    group.command("show")(show)
    group.command("events")(events)
    group.command("export")(export_session)
    group.command("check")(check_bundle)
    app.add_typer(group, name="sessions")


def list_sessions(
    prefix: Annotated[str, typer.Option(help="Only keys that begin so.")] = "",
) -> None:
    """One line a conversation, newest first."""
    for info in _with_store(lambda store: store.streams(prefix)):
        work = "working" if info.open_turn else "idle"
        when = f"{info.updated_at:%Y-%m-%d %H:%M:%S}"
        typer.echo(f"{info.key}  {info.session_id or '-'}  {info.seq} events  {work}  {when} UTC")


def show(
    key: Key,
    at: Annotated[int | None, typer.Option(min=1, help="The state after this event.")] = None,
) -> None:
    """The state of a conversation as JSON, now or at an earlier event."""
    log = _log(key, at)
    if at is not None and at > log[-1].seq:
        _refuse(f"{key} has no event {at} yet; its newest is {log[-1].seq}.")
    state = fold(SessionState(key=key), log)
    typer.echo(msgspec.json.format(msgspec.json.encode(state)).decode())


def events(key: Key) -> None:
    """The whole log, one event a line as JSON."""
    for recorded in _log(key):
        typer.echo(msgspec.json.encode(recorded).decode())


def export_session(
    key: Key,
    folder: Annotated[Path, typer.Argument(help="A folder that is not there yet.")],
    *,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the events.")] = False,
) -> None:
    """Copies a conversation into files, a bundle; also one that was set aside."""
    request = Request(
        key=key, target=folder, at=SystemClock().now(), why="exported by hand", compress=gzip
    )
    try:
        meta = _with_store(lambda store: export(store, request))
    except OSError as error:
        _refuse(f"{folder} cannot be written: {error}")
    if meta is None:
        _unknown(key)
    typer.echo(f"{folder}: {meta.events} events of {meta.key}")
    if meta.fault:
        typer.echo(f"It is broken, and kept as it is: {meta.fault}")


def check_bundle(folder: Annotated[Path, typer.Argument(help="Of a bundle.")]) -> None:
    """Says whether a bundle is sound, or what is wrong with it first."""
    try:
        meta = check(folder)
    except BrokenDataError as error:
        _refuse(f"{folder} is not sound: {error}")
    typer.echo(f"{folder} is sound: {meta.events} events of {meta.key}")


def _log(key: str, last: int | None = None) -> tuple[Recorded, ...]:
    found = _with_store(lambda store: store.events(key, 1, last))
    if not found:
        _unknown(key)
    return found


def _unknown(key: str) -> NoReturn:
    _refuse(f"There is no conversation {key}. `stillhere sessions list` shows all of them.")


def _refuse(text: str) -> NoReturn:
    typer.echo(text, err=True)
    raise typer.Exit(1)


def _with_store(look: Callable[[SqlStore], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        store = await open_store(read_settings(), read_only=True)
        try:
            return await look(store)
        finally:
            await store.close()

    return asyncio.run(run())
