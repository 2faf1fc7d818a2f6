"""What the person sees while an answer is in the making."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any

import pytest

from core.domain.keys import Address
from core.domain.messages import ModelReply, ModelRequest, OutboxMessage, Part, RequestSize
from core.errors import (
    PermanentError,
    StillhereError,
    StorageError,
    TransientError,
    UnknownOutcomeError,
)
from core.ports import Claimed, OnText, ToolContext, ToolOutput
from tests.core.runtime.house import LEASE, Chat, FakeTool, Ground, asks, passes
from tests.core.runtime.virtual import in_virtual_time

WORDS = ("Once", "upon", "a", "time")


class Streaming:
    """A model that says a word every two seconds; the last one stays unsaid at first."""

    name = "streaming"

    def __init__(self, pause: float = 2.0) -> None:
        self.pause = pause

    async def measure(self, request: ModelRequest) -> RequestSize:
        return RequestSize()

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        for number in range(1, len(WORDS) + 1):
            await passes(self.pause)
            on_text(" ".join(WORDS[:number]))
        await passes(self.pause)
        return ModelReply(text=" ".join(WORDS))


def streaming(pause: float = 2.0) -> Ground:
    ground = Ground()
    ground.model = Streaming(pause)
    return ground


@in_virtual_time
async def test_an_answer_grows_in_one_message_and_ends_in_it() -> None:
    ground = streaming()
    process = await ground.starts()

    await process.hears("a story")
    await passes(5)
    assert ground.chat.texts == ["Once upon …"]
    await passes(20)

    assert ground.chat.texts == ["Once upon a time"]
    assert len(ground.chat.calls("send")) == 1


@in_virtual_time
async def test_it_types_until_there_is_text_and_not_without_end() -> None:
    ground = streaming(pause=3_000)
    process = await ground.starts()

    await process.hears("a story")
    await passes(60)
    assert len(ground.chat.calls("typing")) == pytest.approx(15, abs=2)
    await passes(2_000)

    assert max(at for at, _ in ground.chat.calls("typing")) < 620


@in_virtual_time
async def test_a_stream_never_sends_more_than_the_chat_allows() -> None:
    ground = streaming(pause=0.3)
    process = await ground.starts()
    for _ in range(5):
        await process.hears("a story")

    await passes(60)

    times = sorted(at for at, _, _ in ground.chat.log)
    windows = [sum(begin <= at < begin + 10 for at in times) for begin in times]
    assert max(windows) <= 10 + 3


@in_virtual_time
async def test_a_resumed_turn_goes_on_in_the_same_message() -> None:
    ground = streaming()
    first = await ground.starts()
    await first.hears("a story")
    await passes(5)
    first.dies()
    await passes(LEASE)

    await ground.starts()
    await passes(30)

    assert ground.chat.texts == ["Once upon a time"]


@in_virtual_time
async def test_who_stood_still_past_its_lease_shows_nothing_over_the_answer() -> None:
    ground = streaming(pause=6)
    paused = await ground.starts()
    await paused.hears("a story")
    paused.forgets_to_renew()
    await passes(16)
    assert ground.chat.texts == ["Once upon …"]

    ground.model = Streaming(pause=0.2)
    await ground.starts()
    await passes(3)
    shown = len(ground.chat.log)
    await passes(60)

    assert ground.chat.texts == ["Once upon a time"]
    assert len(ground.chat.log) == shown


@in_virtual_time
async def test_who_stood_still_begins_no_message_of_a_turn_that_another_ended() -> None:
    ground = streaming(pause=20)
    paused = await ground.starts()
    await paused.hears("a story")
    paused.forgets_to_renew()
    await passes(16)

    ground.model = Streaming(pause=0.1)
    await ground.starts()
    await passes(90)

    assert ground.chat.texts == ["Once upon a time"]


@in_virtual_time
async def test_a_preview_that_the_user_deleted_is_replaced_by_a_new_message() -> None:
    ground = streaming()
    process = await ground.starts()
    await process.hears("a story")
    await passes(9.5)
    ground.chat.shown.clear()
    ground.chat.edit_faults.append(PermanentError("message to edit not found"))

    await passes(10)

    assert ground.chat.texts == ["Once upon a time"]
    assert list(ground.chat.shown) == ["m2"]


@pytest.mark.parametrize(
    "fault",
    [
        lambda: TransientError("429", retry_after=30),
        lambda: PermanentError("blocked"),
        lambda: UnknownOutcomeError("reset"),
    ],
    ids=["flood", "refused", "reset"],
)
@in_virtual_time
async def test_a_preview_that_fails_does_not_cost_the_answer(
    fault: Callable[[], StillhereError],
) -> None:
    ground = streaming()
    process = await ground.starts()
    ground.chat.faults.append(fault())

    await process.hears("a story")
    await passes(60)

    assert ground.chat.texts == ["Once upon a time"]


@in_virtual_time
async def test_an_edit_of_unknown_outcome_is_sent_again_as_an_edit() -> None:
    ground = streaming()
    process = await ground.starts()
    await process.hears("a story")
    await passes(9.5)
    ground.chat.edit_faults.append(UnknownOutcomeError("reset"))

    await passes(20)

    assert ground.chat.texts == ["Once upon a time"]
    assert len(ground.chat.calls("send")) == 1
    assert ground.chat.calls("lookup") == [], "that it is there says nothing of its text"


@in_virtual_time
async def test_a_tool_shows_its_progress_and_the_answer_takes_its_place() -> None:
    ground = Ground(asks("look"), "finished")
    ground.tools["look"] = Telling("look", "read_only")
    process = await ground.starts()

    await process.hears("go")
    await passes(6)
    assert ground.chat.texts == ["6 of 9 …"]
    await passes(20)

    assert ground.chat.texts == ["finished"]


@in_virtual_time
async def test_after_a_stop_nothing_more_is_shown() -> None:
    ground = streaming()
    process = await ground.starts()
    await process.hears("a story")
    await passes(5)

    await process.hears("/stop")
    await passes(60)

    assert ground.chat.texts[0] == "Once upon …"
    assert ground.chat.texts[1].startswith("Stopped")
    assert len(ground.chat.texts) == 2


class Remote(Chat):
    """A platform at the end of a line: what was asked of it arrives, if only later, even when
    nobody waits for it any more."""

    def __init__(self) -> None:
        super().__init__()
        self.slow_edits: deque[float] = deque()
        """How long the next ones take."""

    async def send(self, message: OutboxMessage) -> str:
        return await asyncio.shield(asyncio.create_task(super().send(message)))

    async def edit(self, address: Address, platform_id: str, part: Part) -> None:
        arriving = super().edit(address, platform_id, part)
        await asyncio.shield(asyncio.create_task(self._later(arriving)))

    async def _later(self, arriving: Coroutine[Any, Any, None]) -> None:
        await passes(self.slow_edits.popleft() if self.slow_edits else 0.1)
        await arriving


@pytest.mark.parametrize("seconds", [0.5, 2.0, 9.0])
@in_virtual_time
async def test_a_first_word_that_is_slow_to_arrive_becomes_the_answer(seconds: float) -> None:
    ground = streaming(pause=0.5)
    ground.chat = Remote()
    ground.chat.seconds = seconds
    process = await ground.starts()

    await process.hears("a story")
    await passes(60)

    assert ground.chat.texts == ["Once upon a time"]
    assert len(ground.chat.calls("send")) == 1


@pytest.mark.parametrize(("seconds", "messages"), [(4.0, 1), (9.0, 1), (40.0, 2)])
@in_virtual_time
async def test_an_edit_that_is_slow_to_arrive_never_covers_the_answer(
    seconds: float, messages: int
) -> None:
    ground = streaming()
    ground.chat = chat = Remote()
    chat.slow_edits.append(seconds)
    process = await ground.starts()

    await process.hears("a story")
    await passes(100)

    assert ground.chat.texts[-1] == "Once upon a time"
    assert len(ground.chat.texts) == messages


class Telling(FakeTool):
    async def run(self, arguments: object, context: ToolContext) -> ToolOutput:
        for number in range(1, 10):
            context.progress(f"{number} of 9")
            await passes(1.1)
        return ToolOutput(value="counted")


@in_virtual_time
async def test_a_preview_that_cannot_be_noted_at_once_is_still_where_the_answer_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ground = streaming()
    process = await ground.starts()
    note, faults = ground.store.sent, [StorageError("away")] * 4

    async def often_away(row: Claimed, platform_id: str, at: datetime) -> None:
        if faults:
            raise faults.pop()
        await note(row, platform_id, at)

    monkeypatch.setattr(ground.store, "sent", often_away)
    await process.hears("a story")
    await passes(60)

    assert ground.chat.texts == ["Once upon a time"]
    assert len(ground.chat.calls("send")) == 1


@in_virtual_time
async def test_a_preview_that_arrived_as_its_process_died_becomes_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a platform that can be asked."""
    ground = streaming()
    first = await ground.starts()

    async def dies_of_it(row: Claimed, platform_id: str, at: datetime) -> None:
        first.dies()
        await asyncio.Future()

    with monkeypatch.context() as patch:
        patch.setattr(ground.store, "sent", dies_of_it)
        await first.hears("a story")
        await passes(5)
    assert ground.chat.texts == ["Once …"]
    ground.chat.arrived = "m1"
    await ground.starts()
    await passes(120)

    assert ground.chat.texts == ["Once upon a time"]
