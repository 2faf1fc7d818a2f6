"""Fixtures: the address of an empty database, on SQLite and on PostgreSQL."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import PostgresServer


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
