"""How many durable steps a second 100 sessions get together, beside raw group commit."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import msgspec

from benchmarks.filling import sql_store
from benchmarks.raw import raw_log, same_bytes
from benchmarks.talk import STEPS_A_TURN, Talk, Ticks, sessions_on, taped
from core.ports import Commit, SessionStore
from storage.store import SqlStore

PEOPLE = 100


class CrowdRates(msgspec.Struct, frozen=True):
    """Steps a second: the store's commits, all that a service does, and raw with the same bytes."""

    commit: float
    whole: float
    raw: float


def names(people: int = PEOPLE) -> list[str]:
    return [f"person{number}" for number in range(people)]


async def measure(folder: Path, turns: int, rounds: int, people: int = PEOPLE) -> CrowdRates:
    """In rounds, each on new databases; the median of the rounds."""
    tapes = [(await taped(turns, name))[0] for name in names(people)]
    steps = people * turns * STEPS_A_TURN
    commit: list[float] = []
    whole: list[float] = []
    raw: list[float] = []
    for number in range(rounds):
        here = folder / f"crowd{number}"
        raw.append(steps / await _raw(here / "raw", tapes))
        async with sql_store(here / "commits", SqlStore) as store:
            commit.append(steps / await _together(replay(store, tape) for tape in tapes))
        async with sql_store(here / "whole", SqlStore) as store:
            whole.append(steps / await _together(talks(store, turns, people)))
    return CrowdRates(median(commit), median(whole), median(raw))


async def replay(store: SessionStore, tape: Sequence[Commit]) -> None:
    for commit in tape:
        await store.commit(commit)


def talks(store: SessionStore, turns: int, people: int = PEOPLE) -> list[Awaitable[None]]:
    clock = Ticks()
    sessions = sessions_on(store, clock)
    return [Talk(sessions, clock, name).turns(turns) for name in names(people)]


async def _raw(folder: Path, tapes: Sequence[Sequence[Commit]]) -> float:
    rows = [
        [(stream, seq, same_bytes(commit)) for seq, commit in enumerate(tape)]
        for stream, tape in enumerate(tapes)
    ]
    async with raw_log(folder) as log:

        async def append_all(mine: Sequence[tuple[int, int, str]]) -> None:
            for row in mine:
                await log.append_grouped(row)

        return await _together(append_all(mine) for mine in rows)


async def _together(works: Iterable[Awaitable[None]]) -> float:
    """Seconds until all are done."""
    begin = perf_counter()
    await asyncio.gather(*works)
    return perf_counter() - begin
