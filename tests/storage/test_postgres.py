"""Many processes share one server; a server that is away is a failure that passes."""

import asyncio
import random
import string

import pytest

from core.domain.ledger import Ledger
from core.errors import (
    ConfigurationError,
    ConflictError,
    DuplicateError,
    StorageError,
    UnstorableError,
)
from core.ports import AccessGrant, Artifact
from storage.store import SqlStore
from tests.contract.values import KEY, at, commit, lease, letter, log, said, update
from tests.postgres import PostgresServer, running_postgres

pytestmark = pytest.mark.postgres


async def _results(*commits: object) -> list[type]:
    results = await asyncio.gather(*commits, return_exceptions=True)  # pyright: ignore[reportArgumentType, reportUnknownVariableType, reportCallIssue]
    return sorted((type(result) for result in results), key=lambda kind: kind.__name__)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


async def test_two_stores_cannot_both_write_at_one_place(postgres_url: str) -> None:
    here, there = await SqlStore.open(postgres_url), await SqlStore.open(postgres_url)
    for seq in range(20):
        kinds = await _results(
            here.commit(commit(KEY, seq, said("here"))),
            there.commit(commit(KEY, seq, said("there"))),
        )
        assert kinds == [ConflictError, int]
    assert len(await here.events(KEY)) == 20
    await here.close()
    await there.close()


async def test_two_stores_cannot_both_take_an_update(postgres_url: str) -> None:
    here, there = await SqlStore.open(postgres_url), await SqlStore.open(postgres_url)
    for number in range(20):
        kinds = await _results(
            here.commit(commit(f"a{number}", 0, said(), inbox=update(number))),
            there.commit(commit(f"b{number}", 0, said(), inbox=update(number))),
        )
        assert kinds == [DuplicateError, int]
    assert await here.ledger() == {"telegram": Ledger(accepted=20)}
    await here.close()
    await there.close()


async def test_two_stores_cannot_both_make_an_owner(postgres_url: str) -> None:
    here, there = await SqlStore.open(postgres_url), await SqlStore.open(postgres_url)
    kinds = await _results(
        here.commit(commit("a", 0, said(), access=(AccessGrant("t", "1", "owner"),))),
        there.commit(commit("b", 0, said(), access=(AccessGrant("t", "2", "owner"),))),
    )
    assert kinds == [ConflictError, int]
    await here.close()
    await there.close()


async def test_two_stores_never_claim_the_same_row(postgres_url: str) -> None:
    stores = [await SqlStore.open(postgres_url) for _ in range(4)]
    letters = tuple(letter(f"m{n}", f"chat{n}") for n in range(100))
    await stores[0].commit(commit(KEY, 0, said(), outbox=letters))
    claims = await asyncio.gather(
        *(store.claim(at(), lease(f"s{n}"), limit=7) for n, store in enumerate(stores * 5))
    )
    claimed = [one.message.id for claim in claims for one in claim]
    assert len(claimed) == len(set(claimed)) > 50
    for store in stores:
        await store.close()


async def test_opposite_orders_do_not_lock_each_other_out(postgres_url: str) -> None:
    here, there = await SqlStore.open(postgres_url), await SqlStore.open(postgres_url)
    keys = [f"k{n}" for n in range(10)]
    for seq in range(10):
        kinds = await _results(
            *(here.commit(commit(key, seq, said())) for key in keys),
            *(there.commit(commit(key, seq, said())) for key in reversed(keys)),
        )
        assert kinds == [ConflictError] * 10 + [int] * 10
    await here.close()
    await there.close()


async def test_a_server_that_restarts_is_found_again() -> None:
    with running_postgres() as server:
        store = await SqlStore.open(server.url())
        await store.commit(commit(KEY, 0, said("before")))
        server.stop()
        with pytest.raises(StorageError):
            await store.commit(commit(KEY, 1, said("lost")))
        with pytest.raises(StorageError):
            await store.load(KEY)
        server.start()
        await store.commit(commit(KEY, 1, said("after")))
        assert await store.events(KEY) == log(1, said("before"), said("after"))
        server.stop()
        server.start()
        await store.commit(commit(KEY, 2, said("a restart that nobody noticed")))
        await store.close()


async def test_a_reader_cannot_write(postgres_url: str) -> None:
    await (await SqlStore.open(postgres_url)).close()
    reader = await SqlStore.open(postgres_url, read_only=True)
    with pytest.raises(StorageError):
        await reader.set_fact("a", "b")
    assert await reader.fact("a") is None
    await reader.close()


async def test_a_pooler_in_between_gets_no_named_statements(postgres_url: str) -> None:
    store = await SqlStore.open(f"{postgres_url}?pgbouncer=true&sslmode=disable")
    await asyncio.gather(*(store.commit(commit(f"k{n}", 0, said())) for n in range(5)))
    assert len(await store.streams()) == 5
    await store.close()


async def test_a_database_that_is_not_there_is_the_operators_to_mend(
    postgres_server: PostgresServer,
) -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        await SqlStore.open(postgres_server.url("nowhere"))


async def test_a_server_that_is_away_may_come_back() -> None:
    with pytest.raises(StorageError):
        await SqlStore.open("postgres://127.0.0.1:1/bot?sslmode=disable")


async def test_what_no_index_takes_can_never_be_stored(postgres_url: str) -> None:
    store = await SqlStore.open(postgres_url)
    dice = random.Random(0)
    long = "".join(dice.choices(string.ascii_letters, k=20_000))
    with pytest.raises(UnstorableError):
        await store.commit(commit(KEY, 0, said(), artifacts=(Artifact(long, "x"),)))
    assert await store.events(KEY) == ()
    await store.close()
