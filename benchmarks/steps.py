"""How long one durable step takes alone, by length of history, beside the same bytes raw."""

import os
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack
from io import RawIOBase
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.filling import fill, send_all, sql_store
from benchmarks.raw import RawLog, raw_log, same_bytes
from benchmarks.stopwatch import Stopwatch
from benchmarks.talk import KINDS, PERSON, STEPS_A_TURN, Kind, Talk, Ticks, sessions_on
from core.ports import Commit
from storage.store import SqlStore


class StepTimes(msgspec.Struct, frozen=True):
    """Seconds a step, by messages of history: the store's commit, and all that a service does.

    ``flush`` is what writing 4 KB and flushing them takes by itself.
    """

    commit: dict[int, float]
    whole: dict[int, float]
    raw: float
    flush: float


class TimedStore(SqlStore):
    """Times its commits under the name of the step that is under way, and keeps the newest."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.watch = Stopwatch()
        self.kind = ""
        self.newest: list[Commit] = []

    async def commit(self, commit: Commit) -> int:
        stream = await self.watch.time(self.kind, super().commit(commit))
        self.newest = [commit]
        return stream


class Stand:
    """One database with one conversation in it; without a past, it is a new person each turn."""

    def __init__(self, store: TimedStore, past: list[Commit]) -> None:
        store.watch = Stopwatch()
        self.store = store
        self.whole = Stopwatch()
        self._turns = len(past) // STEPS_A_TURN
        self._clock = Ticks(past[-1].at) if past else Ticks()
        self._sessions = sessions_on(store, self._clock)
        self._talk = Talk(self._sessions, self._clock, PERSON, self._turns)
        self._people = 0

    async def step(self, kind: Kind) -> None:
        if kind == "message" and not self._turns:
            self._people += 1
            self._talk = Talk(self._sessions, self._clock, f"new{self._people}")
        self.store.kind = kind
        await self.whole.time(kind, self._talk.step(kind))
        await send_all(self.store, self.store.newest[-1].at)


class RawStand:
    """Appends the bytes of a tape's steps, one after the other."""

    def __init__(self, log: RawLog, tape: list[Commit]) -> None:
        self.watch = Stopwatch()
        self._log = log
        self._texts = [same_bytes(commit) for commit in tape]
        self._next = 0

    async def step(self, kind: Kind) -> None:
        text = self._texts[self._next % len(self._texts)]
        await self.watch.time(kind, self._log.append((1, self._next, text)))
        self._next += 1


class BareDisk:
    """Flushes one page after the other into a file that grows."""

    def __init__(self, file: RawIOBase) -> None:
        self.watch = Stopwatch()
        self._file = file

    async def step(self, kind: Kind) -> None:
        await self.watch.time(kind, self._flush())

    async def _flush(self) -> None:
        self._file.write(bytes(4096))
        os.fdatasync(self._file)


async def measure(folder: Path, pasts: Mapping[int, list[Commit]], rounds: int) -> StepTimes:
    """``pasts`` are commits of one person each, by messages.

    All take turns in an order that chance makes: what else the machine does, and a disk that
    holds back every so many flushes, then meet all of them alike.
    """
    async with AsyncExitStack() as stack:
        stands: dict[int, Stand] = {}
        for history, past in pasts.items():
            opened = sql_store(folder / f"steps{history}", TimedStore)
            store = await stack.enter_async_context(opened)
            await fill(store, past)
            stands[history] = Stand(store, past)
        raw = RawStand(
            await stack.enter_async_context(raw_log(folder / "steps-raw")),
            pasts[max(pasts)],
        )
        bare = BareDisk(stack.enter_context((folder / "bare").open("xb", buffering=0)))
        competitors, dice = [*stands.values(), raw, bare], random.Random(1)
        for _ in range(rounds):
            for kind in KINDS:
                dice.shuffle(competitors)
                for competitor in competitors:
                    await competitor.step(kind)
        return StepTimes(
            commit={history: stand.store.watch.typical() for history, stand in stands.items()},
            whole={history: stand.whole.typical() for history, stand in stands.items()},
            raw=raw.watch.typical(),
            flush=bare.watch.typical(),
        )
