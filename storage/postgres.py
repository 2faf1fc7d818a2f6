"""Many processes share one server; never keeps a lock between transactions."""

import asyncio
import re
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg
import sqlalchemy as sa
import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from core.errors import ConfigurationError, StorageError, UnstorableError
from core.ports import Hear
from storage.engine import DialectName, RefusedError, T, Work, storage_errors, transact
from storage.listening import Listener
from storage.unblocking import Unblocker
from storage.url import PostgresUrl
from storage.way import POOL_SIZE, TOO_MANY, Patience, Way, chain, sqlstates

_PAUSE = 0.2
"""Seconds between two tries of a server that has no place."""
_WRONG_ADDRESS = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidPasswordError,
    asyncpg.InvalidCatalogNameError,
)
_NO_LOGIN = re.compile(
    r"authentication failed|no such (user|database)|(database|role|user) \"[^\"]*\" does not exist"
)
"""What poolers say of a wrong address, without its number."""
_NO_PLACE = "no more connections"
"""As PgBouncer says it."""
_REFUSED_SETTINGS = ("startup parameter", "unrecognized configuration parameter")
_POOLER = (
    "a connection pooler stands before the database: nothing is prepared beyond a transaction."
    " pgbouncer=true in DATABASE_URL says so from the first"
)


log = structlog.get_logger(__name__)


class PoolerFoundError(StorageError):
    """The address leads to a pooler, which it does not say."""


class PostgresDatabase:
    def __init__(self, way: Way, pool_size: int, notes: tuple[str, ...]) -> None:
        self._way = way
        self._engine = way.pool(pool_size)
        self._unblocker = Unblocker(way)
        self._notes = notes

    @property
    def dialect(self) -> DialectName:
        return "postgresql"

    @property
    def exclusive(self) -> bool:
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        return self._notes

    @property
    def folder(self) -> Path | None:
        return None

    async def write(self, work: Work[T]) -> T:
        with _errors(), self._unblocker.watching():
            async with self._connection(self._engine) as connection:
                return await connection.run_sync(transact, self._way.prepared(work))

    async def read(self, work: Work[T]) -> T:
        return await self.write(work)

    async def listen(self, hear: Hear, sender: str) -> None:
        url = self._way.listening
        if url is None:
            log.warning(
                "not told of what others do; looking each second",
                error="a pooler is in between, and DIRECT_DATABASE_URL names no way past it",
            )
            await asyncio.Event().wait()
            return
        await Listener(url, sender).run(hear)

    async def alter(self, work: Work[T]) -> T:
        engine = self._way.single(self._way.patience.alter)
        try:
            with _errors(), self._unblocker.watching():
                async with self._connection(engine) as connection:
                    return await connection.run_sync(transact, self._way.unhurried(work))
        finally:
            await asyncio.shield(engine.dispose())

    @asynccontextmanager
    async def _connection(self, engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
        """Where the server has no place for one more, one of ours that comes free will do."""
        time = asyncio.get_running_loop().time
        until = time() + self._way.patience.place
        while True:
            try:
                connection = await engine.connect()
                break
            except (SQLAlchemyError, asyncpg.PostgresError) as error:
                if not _is_full(error) or time() >= until:
                    raise
            await asyncio.sleep(_PAUSE)
        try:
            yield connection
        finally:
            await asyncio.shield(asyncio.create_task(connection.close()))

    async def backup(self, tag: str) -> Path | None:
        return None

    async def check(self) -> None:
        """Raises PoolerFoundError where our session is not the server's: the number that the server
        gave at the beginning is not that of who works for us."""
        engine = self._way.probe()
        try:
            with _errors():
                async with self._connection(engine) as connection:
                    driver = (await connection.get_raw_connection()).driver_connection
                    found = await connection.execute(sa.select(sa.func.pg_backend_pid()))
                    at_work = found.scalar()
            if not self._way.pooled and driver and at_work != driver.get_server_pid():
                raise PoolerFoundError(_POOLER)
        finally:
            await asyncio.shield(engine.dispose())

    async def close(self) -> None:
        await self._unblocker.close()
        await self._engine.dispose()


async def open_postgres(
    url: PostgresUrl,
    *,
    direct: PostgresUrl | None = None,
    pool_size: int = POOL_SIZE,
    read_only: bool = False,
    patience: Patience | None = None,
) -> PostgresDatabase:
    """``direct`` is the way to the same server that no pooler is on, if there is another.

    Raises ConfigurationError for a wrong user, password or database name; StorageError when the
    server cannot be reached.
    """
    way = Way(
        direct=direct,
        url=url,
        pooled=url.pooled,
        read_only=read_only,
        patience=patience or Patience(),
    )
    try:
        return await _opened(way, pool_size, url.notes)
    except StorageError as error:
        if way.pooled or not _speaks_of_pooler(error):
            raise
    return await _opened(way.through_pooler(), pool_size, (*url.notes, _POOLER))


async def _opened(way: Way, pool_size: int, notes: tuple[str, ...]) -> PostgresDatabase:
    database = PostgresDatabase(way, pool_size, notes)
    try:
        await database.check()
    except BaseException as error:
        await asyncio.shield(database.close())
        if (wrong := _wrong_address(error)) is not None:
            raise wrong from error
        raise
    return database


@contextmanager
def _errors() -> Generator[None]:
    """Raises StorageError in words that an operator can do something with."""
    try:
        with storage_errors(asyncpg.PostgresError, asyncpg.InterfaceError):
            yield
    except (RefusedError, UnstorableError):
        raise
    except StorageError as error:
        if not _is_full(error):
            raise
        raise StorageError(
            f"the server takes no more connections ({error}). Fewer processes, a smaller"
            " DATABASE_POOL or a larger plan helps"
        ) from error


def _is_full(error: BaseException) -> bool:
    return TOO_MANY in sqlstates(error) or _says(error, (_NO_PLACE,))


def _speaks_of_pooler(error: BaseException) -> bool:
    return isinstance(error, PoolerFoundError) or _says(error, _REFUSED_SETTINGS)


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    return any(word in str(one).lower() for one in chain(error) for word in words)


def _wrong_address(error: BaseException) -> ConfigurationError | None:
    for one in chain(error):
        if isinstance(one, _WRONG_ADDRESS):
            return ConfigurationError(f"DATABASE_URL: the server says: {one}")
    if isinstance(error, StorageError) and _NO_LOGIN.search(str(error)):
        return ConfigurationError(f"DATABASE_URL: the server says: {error}")
    return None
