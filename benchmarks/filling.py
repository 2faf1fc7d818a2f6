"""Stores with a past, put in quickly or as a service would leave them; measures nothing."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
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
        await send_all(store, some[-1].at)


async def relive(store: Store, commits: Sequence[Commit]) -> None:
    """A turn at a time, with its preview, and each answer is claimed and sent before the next."""
    for first in range(0, len(commits), STEPS_A_TURN):
        *begin, end = commits[first : first + STEPS_A_TURN]
        lease = Lease("benchmark", end.at)
        previews, _ = await asyncio.gather(
            asyncio.gather(
                *(store.open_preview(_preview(row), lease, end.at) for row in end.outbox)
            ),
            asyncio.gather(*(store.commit(commit) for commit in begin)),
        )
        await asyncio.gather(
            store.commit(end),
            *(store.sent(row, _PLATFORM_ID, end.at) for _, row in previews if row is not None),
        )
        await send_all(store, end.at)


async def send_all(outbox: Outbox, at: datetime) -> None:
    while rows := await outbox.claim(at, Lease("benchmark", at)):
        await asyncio.gather(*(outbox.sent(row, _PLATFORM_ID, at) for row in rows))


def _preview(answer: OutboxMessage) -> OutboxMessage:
    return OutboxMessage(
        id=answer.edits,
        key=answer.key,
        address=answer.address,
        kind="preview",
        part=_NOTHING_YET,
    )
