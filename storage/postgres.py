"""PostgreSQL by asyncpg, shared by any number of processes; never keeps a lock between
transactions."""

import asyncio
from pathlib import Path

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from core.errors import ConfigurationError
from core.ports import Hear
from storage.engine import DialectName, T, Work, storage_errors, transact
from storage.listening import Listener
from storage.url import PostgresUrl

POOL_SIZE = 5
_WRONG_ADDRESS = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidPasswordError,
    asyncpg.InvalidCatalogNameError,
)


class PostgresDatabase:
    def __init__(self, engine: AsyncEngine, url: PostgresUrl) -> None:
        self._engine = engine
        self._url = url

    @property
    def dialect(self) -> DialectName:
        return "postgresql"

    @property
    def exclusive(self) -> bool:
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        return self._url.notes

    @property
    def folder(self) -> Path | None:
        return None

    async def write(self, work: Work[T]) -> T:
        with storage_errors(asyncpg.PostgresError, asyncpg.InterfaceError):
            async with self._engine.connect() as connection:
                return await connection.run_sync(transact, work)

    async def read(self, work: Work[T]) -> T:
        return await self.write(work)

    async def listen(self, hear: Hear, sender: str) -> None:
        await Listener(self._url, sender).run(hear)

    async def backup(self, tag: str) -> Path | None:
        return None

    async def close(self) -> None:
        await self._engine.dispose()


async def open_postgres(
    url: PostgresUrl, *, pool_size: int = POOL_SIZE, read_only: bool = False
) -> PostgresDatabase:
    """Raises ConfigurationError for a wrong user, password or database name; StorageError when the
    server cannot be reached."""
    arguments = dict(url.arguments)
    if read_only:
        settings = dict(arguments.get("server_settings", {}))
        arguments["server_settings"] = {**settings, "default_transaction_read_only": "on"}
    engine = create_async_engine(
        url.url,
        connect_args=arguments,
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=True,
        json_serializer=_as_it_is,
        json_deserializer=_as_it_is,
    )
    database = PostgresDatabase(engine, url)
    try:
        with storage_errors(asyncpg.PostgresError, asyncpg.InterfaceError):
            async with engine.connect():
                pass
    except BaseException as error:
        await asyncio.shield(engine.dispose())
        raise _explained(error) from error
    return database


def _as_it_is(text: str) -> str:
    """JSON stays text: the codec reads it, not the driver."""
    return text


def _explained(error: BaseException) -> BaseException:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, _WRONG_ADDRESS):
            return ConfigurationError(f"DATABASE_URL: the server says: {cause}")
        cause = cause.__cause__
    return error
