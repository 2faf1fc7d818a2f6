"""One suite, three stores: in memory, on SQLite, on a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from core.ports import Store
from storage.memory import MemoryStore
from storage.store import SqlStore
from tests.postgres import postgres_server, postgres_template

__all__ = ["postgres_server", "postgres_template"]


def _postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    server = request.getfixturevalue("postgres_server")
    template = request.getfixturevalue("postgres_template")
    name = asyncio.run(server.new_database(template))
    yield server.url(name)
    asyncio.run(server.drop_database(name))


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/data/store.db"


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    yield from _postgres_url(request)


@pytest.fixture(params=["sqlite_url", pytest.param("postgres_url", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


@pytest.fixture(
    params=["memory", "sqlite_url", pytest.param("postgres_url", marks=pytest.mark.postgres)]
)
def store_url(request: pytest.FixtureRequest) -> str:
    name = request.param
    return name if name == "memory" else request.getfixturevalue(name)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    made: Store = MemoryStore() if store_url == "memory" else await SqlStore.open(store_url)
    yield made
    await made.close()
