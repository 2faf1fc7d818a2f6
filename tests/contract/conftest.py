"""One suite, three stores: in memory, on SQLite, on a real PostgreSQL; and in the long matrix the
same two on the tables of a version to come, as they are in its deploy and after a rollback."""

from collections.abc import AsyncIterator

import pytest

from core.ports import Store
from storage.memory import MemoryStore
from storage.store import SqlStore


@pytest.fixture(
    params=[
        *("memory", "sqlite_url"),
        pytest.param("postgres_url", marks=pytest.mark.postgres),
        pytest.param("newer_sqlite_url", marks=pytest.mark.matrix),
        pytest.param("newer_postgres_url", marks=[pytest.mark.matrix, pytest.mark.postgres]),
    ]
)
def store_url(request: pytest.FixtureRequest) -> str:
    name = request.param
    return name if name == "memory" else request.getfixturevalue(name)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    made: Store = MemoryStore() if store_url == "memory" else await SqlStore.open(store_url)
    yield made
    await made.close()
