"""One suite, three stores: in memory, on SQLite, on a real PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from core.ports import Store
from storage.memory import MemoryStore
from storage.store import SqlStore


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
