"""How a PostgreSQL is reached, directly or through a pooler, and how long anything may take there;
it opens no connection by itself."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy import event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from storage.engine import T, Work
from storage.url import PostgresUrl

APPLICATION = "stillhere"
"""As an operator sees our sessions in pg_stat_activity; ``application_name`` in the address is
another."""
POOL_SIZE = 5
TOO_MANY = "53300"
_READ_ONLY = "25006"
_UNNAMED: dict[str, Any] = {
    "statement_cache_size": 0,
    "prepared_statement_cache_size": 0,
    "prepared_statement_name_func": str,
}
"""Behind a pooler no prepared statement may outlive its transaction; one without a name is
forgotten with the next."""
_KEEP_ALIVE = {"idle": 30, "interval": 10, "count": 3}
"""Seconds of silence, seconds between questions, and how many of them stay unanswered at most."""
_OPTIONS = {"idle": "TCP_KEEPIDLE", "interval": "TCP_KEEPINTVL", "count": "TCP_KEEPCNT"}


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    statement: float = 15.0
    """Of one statement, and of a transaction that its own process leaves alone; by the server."""
    answer: float = 20.0
    """Of the whole way there and back, for a network that swallows what is sent; by us."""
    blocked: float = 5.0
    """After which it is looked who blocks us. See ``storage.unblocking``."""
    place: float = 5.0
    """For a server that has no place for one more connection."""
    alter: float = 3600.0
    """Of an upgrade."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """``pooled``: sessions are not ours alone, so that every transaction brings its settings."""

    url: PostgresUrl
    direct: PostgresUrl | None = None
    """The way to the same server past the pooler."""
    pooled: bool = False
    read_only: bool = False
    patience: Patience = Patience()

    @property
    def name(self) -> str:
        """As whose our sessions are shown."""
        return name_of(self.url)

    @property
    def listening(self) -> PostgresUrl | None:
        """Where LISTEN is heard: a pooler takes it and never tells."""
        return self.direct or (None if self.pooled else self.url)

    def pool(self, size: int) -> AsyncEngine:
        return self._engine(
            self.patience.answer,
            pool_size=size,
            max_overflow=0,
            pool_timeout=self.patience.answer,
            pool_pre_ping=True,
        )

    def single(self, answer: float | None = None) -> AsyncEngine:
        """Of connections that are closed after use. ``answer``: seconds of one statement."""
        return self._engine(answer or self.patience.answer, poolclass=NullPool)

    def probe(self) -> AsyncEngine:
        """To find out whether the way is what it seems: it leaves nothing with a pooler."""
        return self._engine(self.patience.answer, unnamed=True, poolclass=NullPool)

    def _engine(self, answer: float, *, unnamed: bool = False, **of_pool: object) -> AsyncEngine:
        arguments = {**self.url.arguments, "command_timeout": answer}
        if self.pooled or unnamed:
            arguments |= _UNNAMED
        if not self.pooled:
            arguments["server_settings"] = self.settings
        engine = create_async_engine(
            self.url.url,
            connect_args=arguments,
            json_serializer=_as_it_is,
            json_deserializer=_as_it_is,
            **of_pool,
        )
        event.listen(engine.sync_engine, "connect", _keep_alive)
        event.listen(engine.sync_engine, "handle_error", _judge)
        return engine

    @property
    def settings(self) -> dict[str, str]:
        """Of a session that is ours. https://www.postgresql.org/docs/current/runtime-config.html"""
        ours = {
            "application_name": self.name,
            **self._limits(),
            **{f"tcp_keepalives_{name}": str(value) for name, value in _KEEP_ALIVE.items()},
        }
        if self.read_only:
            ours["default_transaction_read_only"] = "on"
        said = self.url.settings.get("options", "")
        kept = {name: value for name, value in ours.items() if f"{name}=" not in said}
        return {**kept, **self.url.settings}

    def _limits(self, statement: float | None = None) -> dict[str, str]:
        patience = self.patience.statement
        return {
            "statement_timeout": _milliseconds(patience if statement is None else statement),
            "idle_in_transaction_session_timeout": _milliseconds(patience),
        }

    def prepared(self, work: Work[T]) -> Work[T]:
        """The work behind what its transaction has to say first."""
        if not self.pooled:
            return work
        said = {"application_name": self.name, **self._limits()}
        if self.read_only:
            said["transaction_read_only"] = "on"
        return _after(said, work)

    def unhurried(self, work: Work[T]) -> Work[T]:
        """As ``prepared``, for work that may take long; it waits no longer for a lock, since all
        who come after it wait for that, too."""
        patience = self.patience
        said = {"application_name": self.name, **self._limits(patience.alter)}
        return _after({**said, "lock_timeout": _milliseconds(patience.statement)}, work)

    def through_pooler(self) -> "Way":
        return replace(self, pooled=True)


def name_of(url: PostgresUrl) -> str:
    return url.settings.get("application_name", APPLICATION)


def _after(settings: dict[str, str], work: Work[T]) -> Work[T]:
    said = sa.select(*(sa.func.set_config(name, to, True) for name, to in settings.items()))  # noqa: FBT003

    def both(connection: sa.Connection) -> T:
        connection.execute(said)
        return work(connection)

    return both


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))


def _as_it_is(text: str) -> str:
    """JSON stays text: the codec reads it, not the driver."""
    return text


def _keep_alive(connection: DBAPIConnection, _: object) -> None:
    """The other end of an idle connection may be gone without a word; asyncpg does not ask."""
    transport = getattr(connection.driver_connection, "_transport", None)
    wire = transport.get_extra_info("socket") if isinstance(transport, asyncio.Transport) else None
    if wire is None or wire.family not in (socket.AF_INET, socket.AF_INET6):
        return
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if (option := getattr(socket, _OPTIONS[name], None)) is not None:
            wire.setsockopt(socket.IPPROTO_TCP, option, value)


def _judge(context: ExceptionContext) -> None:
    """A connection that does not answer is gone, and so are those beside it; one to a server that
    only reads leads to what was the first server before another took over."""
    error = context.original_exception
    if isinstance(error, TimeoutError) or _READ_ONLY in sqlstates(error):
        context.is_disconnect = True


def sqlstates(error: BaseException) -> frozenset[str]:
    """Of an error and of all that led to it."""
    return frozenset(
        state for one in chain(error) if isinstance(state := getattr(one, "sqlstate", None), str)
    )


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error, its cause, and so on; an error of SQLAlchemy's is led to by its ``orig``, too."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            left += [one.__cause__, getattr(one, "orig", None)]
            yield one
