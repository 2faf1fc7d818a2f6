"""What a turn of a long conversation costs the whole service, early and late; the model's own time
and the platform's are not in it."""

import asyncio
import random
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import fmean, median
from time import perf_counter, process_time
from typing import Any

import msgspec
from structlog.testing import capture_logs

from benchmarks.company import CHAT, Friend, Library, Mouth
from benchmarks.filling import sql_store
from bots.app import Service
from bots.clock import SystemClock
from bots.ground import Ground
from bots.settings import Settings
from core.domain.events import CompactionStarted, TurnFinished
from core.domain.state import SessionState
from core.ports import Claimed, Commit
from storage.codec import snapshot_text
from storage.store import SqlStore

LOOKS_UP_EVERY = 3
MESSAGES_A_CYCLE = 2 * LOOKS_UP_EVERY + 2
"""Of as many turns: question and answer of each, and of one also a call and its result."""
PATIENCE = 60.0


class Cost(msgspec.Struct, frozen=True):
    """Seconds: from the platform's call until what was said is marked sent, and the processor's in
    all threads meanwhile."""

    wall: float
    cpu: float


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a life. ``snapshot`` in bytes, the largest that was stored; ``summed_up`` is the
    cost of a turn together with a summary; None where there was no such turn."""

    turn: Cost | None
    summed_up: Cost | None
    summaries: int
    snapshot: int


class LifeCost(msgspec.Struct, frozen=True, kw_only=True):
    messages: int
    span: int
    window: int
    summaries: int
    first: Stage
    middle: Stage
    last: Stage


class Lived(msgspec.Struct, frozen=True):
    cost: Cost
    looked: bool
    summaries: int
    snapshot: int


class WatchedStore(SqlStore):
    """Knows when all that was promised is out, and keeps the snapshots of the turn under way."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.snapshots: list[SessionState] = []
        self.summaries = 0
        self._finished = 0
        self._sent = 0
        self._changed = asyncio.Event()

    async def commit(self, commit: Commit) -> int:
        stream = await super().commit(commit)
        events = [recorded.event for recorded in commit.log]
        self.summaries += sum(isinstance(event, CompactionStarted) for event in events)
        self._finished += sum(isinstance(event, TurnFinished) for event in events)
        if commit.snapshot is not None:
            self.snapshots.append(commit.snapshot)
        return stream

    async def sent(self, row: Claimed, platform_id: str, at: datetime) -> None:
        await super().sent(row, platform_id, at)
        self._sent += 1
        self._changed.set()

    async def all_out(self, turns: int) -> None:
        """Each turn ends with one message, and so does each summary."""
        async with asyncio.timeout(PATIENCE):
            while self._finished < turns or self._sent < turns + self.summaries:
                self._changed.clear()
                await self._changed.wait()


async def measure(folder: Path, messages: int, span: int, window: int) -> LifeCost:
    """``span`` messages are looked at in the beginning, in the middle and at the end."""
    turns = messages * LOOKS_UP_EVERY // MESSAGES_A_CYCLE
    part = span * LOOKS_UP_EVERY // MESSAGES_A_CYCLE
    with capture_logs() as logs:
        lived = await _live(folder / "life", turns, window)
    assert not [line for line in logs if line["log_level"] in ("error", "critical")], logs
    middle = (turns - part) // 2
    return LifeCost(
        messages=messages,
        span=span,
        window=window,
        summaries=sum(turn.summaries for turn in lived),
        first=_stage(lived[:part]),
        middle=_stage(lived[middle : middle + part]),
        last=_stage(lived[-part:]),
    )


async def _live(folder: Path, turns: int, window: int) -> list[Lived]:
    dice = random.Random(1)
    mouth = Mouth(dice)
    async with sql_store(folder, WatchedStore) as store:
        ground = Ground(
            settings=Settings.model_construct(allowed_users=("*",), stillhere_data=folder),
            environment={},
            store=store,
            platforms={CHAT: mouth.platform},
            clock=SystemClock(),
            model=Friend(dice, window),
            tools={Library.spec.name: Library(dice)},
        )
        service = Service(ground)
        await service.start()
        try:
            return [await _turn(mouth, store, number) for number in range(1, turns + 1)]
        finally:
            await service.stop()


async def _turn(mouth: Mouth, store: WatchedStore, number: int) -> Lived:
    looks, before = number % LOOKS_UP_EVERY == 0, store.summaries
    store.snapshots.clear()
    begin, worked = perf_counter(), process_time()
    await mouth.say(look=looks)
    await store.all_out(number)
    cost = Cost(perf_counter() - begin, process_time() - worked)
    largest = max((len(snapshot_text(state).encode()) for state in store.snapshots), default=0)
    return Lived(cost, looks, store.summaries - before, largest)


def _stage(lived: Sequence[Lived]) -> Stage:
    return Stage(
        turn=_typical([turn for turn in lived if not turn.summaries]),
        summed_up=_typical([turn for turn in lived if turn.summaries]),
        summaries=sum(turn.summaries for turn in lived),
        snapshot=max((turn.snapshot for turn in lived), default=0),
    )


def _typical(lived: Sequence[Lived]) -> Cost | None:
    """Medians of turns with a tool's call and of those without, weighted as they come."""
    kinds = [[turn.cost for turn in lived if turn.looked == looked] for looked in (True, False)]
    if not all(kinds):
        return None
    weights = (1, LOOKS_UP_EVERY - 1)
    walls = [median(cost.wall for cost in costs) for costs in kinds]
    cpus = [median(cost.cpu for cost in costs) for costs in kinds]
    return Cost(fmean(walls, weights), fmean(cpus, weights))
