"""A process stood still past its lease, and another did its work: when it wakes, it neither asks
the model nor shows anything."""

import asyncio
from datetime import datetime

from core.domain.messages import ModelReply, ModelRequest, OutboxMessage
from core.ports import Claimed, Commit, Lease, OnText, PreviewState
from storage.memory import MemoryStore
from tests.core.runtime.house import LEASE, Ground, passes
from tests.core.runtime.test_preview import Streaming
from tests.core.runtime.virtual import in_virtual_time


class Dozing(MemoryStore):
    """What ``asleep`` writes in ``place`` is stored, and then it stands still."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place
        self.fell = asyncio.Event()
        self.woken = asyncio.Event()

    async def commit(self, commit: Commit) -> int:
        stream = await super().commit(commit)
        await self._dozes("commit", commit.lease)
        return stream

    async def open_preview(
        self, message: OutboxMessage, lease: Lease, at: datetime
    ) -> tuple[PreviewState, Claimed | None]:
        opened = await super().open_preview(message, lease, at)
        await self._dozes("open_preview", lease)
        return opened

    async def _dozes(self, place: str, lease: Lease | None) -> None:
        if place == self._place and lease is not None and lease.owner == "asleep":
            self.fell.set()
            await self.woken.wait()


class Halting(Streaming):
    """The first answer stops in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = 0

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        self._asked += 1
        if self._asked == 1:
            on_text("Once")
            await passes(100 * LEASE)
        return await super().complete(request, on_text)


@in_virtual_time
async def test_the_model_is_not_asked_by_who_slept_after_the_message_was_stored() -> None:
    ground = Ground("once upon a time", "once upon another time")
    store = Dozing("commit")
    ground.store = store
    asleep = await ground.starts("asleep")
    hearing = asyncio.create_task(asleep.hears("a story"))
    await store.fell.wait()
    asleep.forgets_to_renew()
    asleep.dozes()
    await ground.starts("other")
    await passes(2 * LEASE)
    assert ground.chat.texts == ["once upon a time"]

    store.woken.set()
    await hearing
    await passes(30)

    assert len(ground.script.requests) == 1
    assert ground.chat.texts == ["once upon a time"]


@in_virtual_time
async def test_a_preview_is_not_sent_by_who_slept_after_its_row_was_made() -> None:
    ground = Ground()
    ground.model = Halting()
    ground.store = store = Dozing("open_preview")
    asleep = await ground.starts("asleep")
    await asleep.hears("a story")
    await store.fell.wait()
    asleep.dozes()
    asleep.forgets_to_renew()
    await ground.starts("other")
    await passes(3 * LEASE)
    assert ground.chat.texts == ["Once upon a time"]

    store.woken.set()
    await passes(30)

    assert ground.chat.texts == ["Once upon a time"]
    assert len(ground.chat.calls("send")) == 1
