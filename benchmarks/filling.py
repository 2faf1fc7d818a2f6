"""Stores with a past, put in quickly or as a service would leave them; measures nothing."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from benchmarks.talk import STEPS_A_TURN
from core.domain.messages import OutboxMessage, Part
from core.ports import Commit, Lease, Outbox, Store
from storage.store import SqlStore

StoreType = TypeVar("StoreType", bound=SqlStore)

_AT_ONCE = 100
_PLATFORM_ID = "12345"
_NOTHING_YET = Part(text="…", plain="…")


@asynccontextmanager
async def sql_store(folder: Path, kind: type[StoreType]) -> AsyncGenerator[StoreType]:
    store = await kind.open(f"sqlite:///{folder}/store.db")
    try:
        yield store
    finally:
        await store.close()


async def fill(store: Store, commits: Sequence[Commit]) -> None:
    """Many in a transaction, and what was promised is marked sent."""
    for first in range(0, len(commits), _AT_ONCE):
        some = commits[first : first + _AT_ONCE]
        await asyncio.gather(*(store.commit(commit) for commit in some))
        await send_all(store, some)


async def relive(store: Store, commits: Sequence[Commit]) -> None:
    """A turn at a time, with its preview, and each answer is claimed and sent before the next."""
    for first in range(0, len(commits), STEPS_A_TURN):
        *begin, end = commits[first : first + STEPS_A_TURN]
        lease = Lease("benchmark", end.at)
        previews = [_preview(row) for row in end.outbox]
        await asyncio.gather(
            *(store.commit(commit) for commit in begin),
            *(store.open_preview(preview, lease) for preview in previews),
        )
        await asyncio.gather(
            store.commit(end),
            *(store.sent(preview.id, _PLATFORM_ID, end.at) for preview in previews),
            store.claim(end.at, lease),
        )
        await send_all(store, [end])


async def send_all(outbox: Outbox, commits: Sequence[Commit]) -> None:
    promised = [(row.id, commit.at) for commit in commits for row in commit.outbox]
    await asyncio.gather(*(outbox.sent(name, _PLATFORM_ID, at) for name, at in promised))


def _preview(answer: OutboxMessage) -> OutboxMessage:
    return OutboxMessage(
        id=answer.edits,
        key=answer.key,
        address=answer.address,
        kind="preview",
        part=_NOTHING_YET,
    )
