"""How processes that share a PostgreSQL tell each other what is new; nothing rests on its coming.

A message is sent within the transaction that it tells of, and goes out with it. Who hears it looks
for itself. https://www.postgresql.org/docs/current/sql-notify.html
"""

import asyncio
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, get_args

import asyncpg
import sqlalchemy as sa
import structlog

from core.ports import Hear, Notification
from storage.checks import Ground
from storage.engine import DialectName, json_list, json_rows
from storage.rows import Prepared
from storage.url import PostgresUrl
from storage.way import name_of

CHANNEL = "stillhere"
LONGEST = 4_000
"""Bytes of a message; PostgreSQL takes less than 8,000."""
PING_SECONDS = 30.0
"""How often it is looked whether the connection still stands: a peer that went away without a word
is not noticed otherwise."""
ANSWER_SECONDS = 5.0
AGAIN_SECONDS = 1.0

_KINDS = frozenset(get_args(Notification.__annotations__["kind"]))

log = structlog.get_logger(__name__)


class Telling:
    """The sending side; on SQLite nobody listens, and nothing is sent."""

    def __init__(self, dialect: DialectName) -> None:
        self.sender = secrets.token_hex(6)
        """What the process itself sent, it does not hear."""
        self._tell = None
        if dialect == "postgresql":
            payloads = json_rows(dialect, "payloads", str).subquery("payloads")
            (payload,) = payloads.c
            self._tell = sa.select(sa.func.pg_notify(CHANNEL, payload)).select_from(payloads)

    def tell(self, connection: sa.Connection, news: Iterable[Notification]) -> None:
        if self._tell is None:
            return
        payloads = [f"{self.sender} {one.kind} {one.name}" for one in news]
        rows = [[one] for one in payloads if len(one.encode()) <= LONGEST]
        if rows:
            connection.execute(self._tell, {"payloads": json_list(rows)})


def news_of(ground: Ground, stored: Iterable[Prepared]) -> list[Notification]:
    """What other processes should know of commits that are being stored."""
    news: dict[Notification, None] = {}
    for prepared in stored:
        commit = prepared.commit
        after, before = ground.heads[commit.key], ground.before.get(commit.key)
        if after.open_turn and not after.owner:
            news[Notification("turn")] = None
        elif before is not None and before.owner and commit.lease is None:
            news[Notification("session", commit.key)] = None
    return list(news)


class Listener:
    """The hearing side: a connection of its own, beside the pool."""

    def __init__(self, url: PostgresUrl, sender: str) -> None:
        self._url = url
        self._sender = sender

    async def run(self, hear: Hear) -> None:
        """As ``core.ports.Notifications.listen``."""
        well = True
        while True:
            try:
                await self._hear(hear)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                if well:
                    log.warning("not told of what others do; looking each second", error=str(error))
                well = False
            except Exception:
                log.exception("listening broke off")
            else:
                well = True
            await asyncio.sleep(AGAIN_SECONDS)

    async def _hear(self, hear: Hear) -> None:
        """Returns when the connection has ended."""
        connection = await _connect(self._url)
        ended = asyncio.Event()

        def end(_: object) -> None:
            ended.set()

        try:
            connection.add_termination_listener(end)
            async with asyncio.timeout(ANSWER_SECONDS):
                await connection.add_listener(CHANNEL, self._teller(hear))
            hear(Notification("all"))
            while not ended.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(PING_SECONDS):
                        await ended.wait()
                        return
                async with asyncio.timeout(ANSWER_SECONDS):
                    await connection.execute("SELECT 1")
        finally:
            connection.terminate()

    def _teller(self, hear: Hear) -> Any:  # noqa: ANN401 - as asyncpg has it
        def told(connection: object, pid: int, channel: str, payload: object) -> None:
            sender, _, rest = str(payload).partition(" ")
            kind, _, name = rest.partition(" ")
            if sender != self._sender and kind in _KINDS:
                hear(Notification(kind, name))  # pyright: ignore[reportArgumentType]

        return told


async def _connect(url: PostgresUrl) -> Any:  # noqa: ANN401 - asyncpg has no types
    return await asyncpg.connect(  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        host=url.url.host,
        port=url.url.port,
        user=url.url.username,
        password=url.url.password,
        database=url.url.database,
        server_settings={"application_name": name_of(url)},
        **url.arguments,
    )
