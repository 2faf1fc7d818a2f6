"""Fixtures: the address of an empty database, on SQLite and on PostgreSQL."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.migrate import bring_up, open_database
from tests.postgres import PostgresServer
from tests.revisions import future


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/data/store.db"


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    """Of a database that is migrated already."""
    name = asyncio.run(postgres_server.new_database(postgres_template))
    yield postgres_server.url(name)
    asyncio.run(postgres_server.drop_database(name))


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    name = asyncio.run(postgres_server.new_database())
    yield postgres_server.url(name)
    asyncio.run(postgres_server.drop_database(name))


@pytest.fixture(params=["sqlite_url", pytest.param("postgres_url", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


@pytest.fixture(
    params=["sqlite_url", pytest.param("empty_postgres_url", marks=pytest.mark.postgres)]
)
def empty_url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


async def _of_the_future(url: str, folder: Path) -> None:
    database = await open_database(url)
    try:
        await bring_up(database, future(folder))
    finally:
        await database.close()


@pytest.fixture
def newer_sqlite_url(sqlite_url: str, tmp_path: Path) -> str:
    """Of a version to come, whose revision says that today's programs may run on it."""
    asyncio.run(_of_the_future(sqlite_url, tmp_path / "future"))
    return sqlite_url


@pytest.fixture
def newer_postgres_url(
    postgres_server: PostgresServer, newer_postgres_template: str
) -> Iterator[str]:
    name = asyncio.run(postgres_server.new_database(newer_postgres_template))
    yield postgres_server.url(name)
    asyncio.run(postgres_server.drop_database(name))


@pytest.fixture(scope="session")
def newer_postgres_template(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> str:
    async def make() -> str:
        name = await postgres_server.new_database()
        await _of_the_future(postgres_server.url(name), tmp_path_factory.mktemp("future") / "0")
        return name

    return asyncio.run(make())
