"""``stillhere migrate``: brings the database to this version's revision, or back to an earlier one;
does nothing else."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, TypeVar

import msgspec
import typer

from bots.cli.common import prepare
from bots.cli.environment import environment
from bots.clock import SystemClock
from bots.supervisor import host_of
from core.errors import ConfigurationError, StorageError
from core.ports import Clock
from core.runtime.retrying import backoff
from storage.engine import Database
from storage.goback import RefusedWayError, go_back, other_connections, refuse_if_costly, toll
from storage.migrate import bring_up, open_database, standing_of
from storage.revisions import OURS, Standing
from storage.sqlite import InUseError
from storage.url import PostgresUrl, dump_command, parse_url

PATIENCE = 180
"""Seconds; a host's release step must not hang for ever."""
LONGEST_WAIT = 15.0
"""Seconds between two tries."""
_OF_HOSTS = {"Heroku": "heroku pg:backups:capture"}

T = TypeVar("T")


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """Back ``to`` a revision, and what the operator has said to. ``wait`` in seconds."""

    wait: int
    to: str
    yes: bool
    lose_data: bool
    while_served: bool


class Patience:
    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._until = clock.now() + timedelta(seconds=seconds)

    async def keep_at(self, work: Callable[[], Awaitable[T]]) -> T:
        """Says each time why it waits. Raises the last StorageError."""
        attempt = 1
        while True:
            try:
                return await work()
            except StorageError as error:
                left = (self._until - self._clock.now()).total_seconds()
                if left <= 0:
                    raise
                seconds = min(left, backoff(attempt, longest=LONGEST_WAIT))
                typer.echo(f"Waiting for the database; again in {seconds:.0f} s: {error}", err=True)
            await self._clock.sleep(seconds)
            attempt += 1


def register(app: typer.Typer, summary: str) -> None:
    app.command("migrate", help=summary)(migrate)


def migrate(
    *,
    to: Annotated[
        str,
        typer.Option("--to", metavar="REV", help="Go to this data revision; back, if need be."),
    ] = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="With --to: PostgreSQL's backup has been made.")
    ] = False,
    lose_data: Annotated[
        bool,
        typer.Option("--lose-data", help="With --to: throw away what the older has no room for."),
    ] = False,
    while_served: Annotated[
        bool,
        typer.Option("--while-served", help="With --to: go back although others have it open."),
    ] = False,
    wait: Annotated[
        int, typer.Option("--wait", metavar="SECONDS", help="For a database that is not up yet.")
    ] = PATIENCE,
) -> None:
    url = prepare({}, sys.stderr).database
    if to and to not in OURS.names:
        known = ", ".join(OURS.names)
        raise ConfigurationError(f"--to {to}: there is no such data revision; there are {known}")
    way = Way(wait=wait, to=to, yes=yes, lose_data=lose_data, while_served=while_served)
    asyncio.run(_migrate(url, way))


async def _migrate(url: str, way: Way) -> None:
    to = way.to
    patience = Patience(SystemClock(), way.wait)
    database = await (open_database(url) if to else _opened(url, patience))
    if database is None:
        typer.echo("The database is up to date; the process that has it open has seen to that.")
        return
    try:
        found = await patience.keep_at(lambda: standing_of(database))
        if found.newer:
            typer.echo(_newer(found))
        elif to and to == found.found:
            typer.echo(f"The data is at revision {to} already.")
        elif to and found.found and OURS.names.index(to) < OURS.names.index(found.found):
            await _take_back(database, url, way, found.found)
        elif to and to != OURS.newest:
            raise ConfigurationError(
                f"--to {to}: the data is at {found.found or 'no revision yet'}, and this version"
                f" goes forward to its own revision only, {OURS.newest}; leave out --to"
            )
        else:
            await _bring_up(database, url, found, patience)
    finally:
        await database.close()


def _newer(found: Standing) -> str:
    return (
        f"The data is at revision {found.found}, a newer version's; this one knows up to"
        f" {found.needed} and may run on it. Nothing to do; only that version can take it back."
    )


async def _bring_up(database: Database, url: str, found: Standing, patience: Patience) -> None:
    if not found.current and found.found:
        typer.echo(
            f"The data is at revision {found.found}; this version takes it to {OURS.newest}."
        )
        _name_backup(url, found.found)
    backup = await patience.keep_at(lambda: bring_up(database, waiting=_other_at_work))
    if backup is not None:
        typer.echo(f"The database as it was is kept in {backup}")
    typer.echo(f"The database is up to date (data revision {OURS.newest}).")


async def _take_back(database: Database, url: str, way: Way, found: str) -> None:
    """Raises RefusedWayError before anything is changed."""
    to = way.to
    typer.echo(f"From data revision {found} back to {to}.")
    if _name_backup(url, found) and not way.yes:
        raise RefusedWayError("Make the backup, then say --yes. Nothing was changed")
    others = await other_connections(database)
    if others and not way.while_served:
        raise RefusedWayError(
            f"{others} other connections have the database open: stop every process that serves it"
            " (`stillhere doctor` names them), or say --while-served. Nothing was changed"
        )
    price = await toll(database, to)
    for line in (*price.lost, *price.unread):
        typer.echo(f"  has no room in {to}: {line}")
    if not way.lose_data:
        refuse_if_costly(price, to)
    backup = await go_back(database, to, found, waiting=_other_at_work)
    if backup is not None:
        typer.echo(f"The database as it was is kept in {backup}")
    typer.echo(
        f"The data is at revision {to} now. Start the older version next: this one would bring it"
        f" to {OURS.newest} again at its start."
    )


def _name_backup(url: str, found: str) -> bool:
    """Whether there is one to be made by the operator."""
    match parse_url(url):
        case PostgresUrl() as server:
            typer.echo(f"A backup of it as it is: {dump_command(server, f'stillhere-{found}')}")
            if own := _OF_HOSTS.get(host_of(environment())):
                typer.echo(f"or by your host: {own}")
            return True
        case _:
            return False


def _other_at_work() -> None:
    typer.echo("Another process is upgrading the database just now; waiting for it.", err=True)


async def _opened(url: str, patience: Patience) -> Database | None:
    """None when another process has a SQLite file open that is up to date, so that there is nothing
    to do. Raises ConfigurationError, StorageError."""

    async def look() -> Database | None:
        try:
            return await open_database(url)
        except InUseError as error:
            if await _is_current(url):
                return None
            raise StorageError(str(error)) from error

    try:
        return await patience.keep_at(look)
    except StorageError as error:
        raise error.__cause__ if isinstance(error.__cause__, InUseError) else error from None


async def _is_current(url: str) -> bool:
    database = await open_database(url, read_only=True)
    try:
        return (await standing_of(database)).current
    finally:
        await database.close()
