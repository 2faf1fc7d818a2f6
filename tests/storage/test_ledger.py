"""The numbers are of one moment, whoever writes meanwhile, and however many processes do."""

import asyncio
from itertools import count

import pytest
from msgspec.structs import replace

from core.domain.ledger import Ledger
from storage.store import SqlStore
from tests.contract.values import at, commit, put_aside, said, update

PEOPLE, TURNS = 12, 10


async def _talk(store: SqlStore, person: str) -> None:
    """Each message is taken, and then answered; or it fails, is tried again and is discarded."""
    key = f"agent:main:telegram:dm:{person}"
    seqs = count()
    for number in range(TURNS):
        name = replace(update(number), account=person)
        await store.commit(commit(key, next(seqs), said(), owed=1, inbox=name))
        for outcome in ("answered",) if number % 2 else ("failed", "pending", "discarded"):
            settled = ((name, outcome),)
            owed = int(outcome == "pending")
            await store.commit(commit(key, next(seqs), said(), owed=owed, settled=settled))


async def _watch(store: SqlStore, over: asyncio.Event) -> list[Ledger]:
    seen: list[Ledger] = []
    while not over.is_set():
        seen += (await store.ledger()).values()
    return seen


async def _watched(reader: SqlStore, *writers: SqlStore) -> list[Ledger]:
    over = asyncio.Event()
    watching = asyncio.create_task(_watch(reader, over))
    talks = (_talk(writers[n % len(writers)], f"p{n}") for n in range(PEOPLE))
    await asyncio.wait_for(asyncio.gather(*talks), 60)
    over.set()
    return await watching


WHOLE = Ledger(accepted=PEOPLE * TURNS, answered=PEOPLE * TURNS // 2, discarded=PEOPLE * TURNS // 2)


async def test_a_reader_never_sees_half_a_change(database_url: str) -> None:
    writer = await SqlStore.open(database_url)
    reader = await SqlStore.open(database_url, read_only=True)
    seen = await _watched(reader, writer)
    assert {ledger.missing for ledger in seen} == {0}
    assert len({ledger.accepted for ledger in seen}) > 5
    assert await reader.ledger() == {"telegram": WHOLE}
    await reader.close()
    await writer.close()


@pytest.mark.postgres
async def test_processes_that_share_a_database_count_together(postgres_url: str) -> None:
    stores = [await SqlStore.open(postgres_url) for _ in range(3)]
    seen = await _watched(*stores)
    assert {ledger.missing for ledger in seen} == {0}
    assert await stores[0].ledger() == {"telegram": WHOLE}
    for store in stores:
        await store.close()


@pytest.mark.postgres
async def test_a_key_set_aside_under_a_writer_is_counted_once(postgres_url: str) -> None:
    here, there = await SqlStore.open(postgres_url), await SqlStore.open(postgres_url)
    keys = [f"agent:main:telegram:dm:{number}" for number in range(20)]
    taken = [replace(update(), account=key) for key in keys]
    for key, name in zip(keys, taken, strict=True):
        await here.commit(commit(key, 0, said(), owed=1, inbox=name))
    answers = (
        there.commit(commit(key, 1, said(), settled=((name, "answered"),)))
        for key, name in zip(keys, taken, strict=True)
    )
    await asyncio.gather(
        *answers, *(put_aside(here, key, at()) for key in keys), return_exceptions=True
    )
    ledger = (await here.ledger())["telegram"]
    assert (ledger.accepted, ledger.missing, ledger.pending) == (20, 0, 0)
    assert await here.unowed() == ()
    await here.close()
    await there.close()
