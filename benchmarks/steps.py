"""How long one durable step takes alone, by length of history, beside the same bytes raw."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from benchmarks.filling import fill, send_all, sql_store
from benchmarks.raw import raw_log, same_bytes
from benchmarks.stopwatch import Stopwatch
from benchmarks.talk import KINDS, PERSON, STEPS_A_TURN, Kind, Talk, Ticks, sessions_on
from core.ports import Commit
from storage.codec import Codec
from storage.engine import Database
from storage.store import SqlStore


class StepTimes(msgspec.Struct, frozen=True):
    """Seconds a step, by messages of history: the store's commit, and all that a service does."""

    commit: dict[int, float]
    whole: dict[int, float]
    raw: float


class TimedStore(SqlStore):
    """Times its commits under the name of the step that is under way, and keeps the newest."""

    def __init__(
        self, database: Database, codec: Codec | None = None, backup: Path | None = None
    ) -> None:
        super().__init__(database, codec, backup)
        self.watch = Stopwatch()
        self.kind = ""
        self.newest: list[Commit] = []

    async def commit(self, commit: Commit) -> None:
        await self.watch.time(self.kind, super().commit(commit))
        self.newest = [commit]


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

    async def step(self, kind: Kind) -> Commit:
        if kind == "message" and not self._turns:
            self._people += 1
            self._talk = Talk(self._sessions, self._clock, f"new{self._people}")
        self.store.kind = kind
        await self.whole.time(kind, self._talk.step(kind))
        await send_all(self.store, self.store.newest)
        return self.store.newest[0]


async def measure(folder: Path, pasts: Mapping[int, list[Commit]], rounds: int) -> StepTimes:
    """``pasts`` are commits of one person each, by messages. All take turns, so that whatever else
    the machine does meets all of them alike."""
    async with AsyncExitStack() as stack:
        stands: dict[int, Stand] = {}
        for history, past in pasts.items():
            opened = sql_store(folder / f"steps{history}", TimedStore)
            store = await stack.enter_async_context(opened)
            await fill(store, past)
            stands[history] = Stand(store, past)
        raw, watch = await stack.enter_async_context(raw_log(folder / "steps-raw")), Stopwatch()
        for number in range(rounds * STEPS_A_TURN):
            kind = KINDS[number % STEPS_A_TURN]
            commits = [await stand.step(kind) for stand in stands.values()]
            await watch.time(kind, raw.append((1, number, same_bytes(commits[-1]))))
        return StepTimes(
            commit={history: stand.store.watch.typical() for history, stand in stands.items()},
            whole={history: stand.whole.typical() for history, stand in stands.items()},
            raw=watch.typical(),
        )
