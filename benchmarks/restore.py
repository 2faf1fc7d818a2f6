"""How long it takes until a long session is there again, in a database that was just opened."""

import sqlite3
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

import msgspec

from benchmarks.filling import fill, sql_store
from benchmarks.talk import EVENTS_A_TURN, PERSON, STEPS_A_TURN, Talk, Ticks, sessions_on
from core.domain.policy import Policy
from core.ports import Commit
from storage.store import SqlStore

_EVERY = Policy().snapshot_every


class RestoreTimes(msgspec.Struct, frozen=True):
    """Seconds, each the median. ``opening`` opens a database that is there. The others load, fold
    and check the session: with the snapshot of a clean stop, with one that is ``tail`` events old,
    nearly the oldest that a kill leaves, and with none at all."""

    opening: float
    stopped: float
    killed: float
    tail: int
    from_log: float


async def measure(folder: Path, past: list[Commit], rounds: int) -> RestoreTimes:
    """The operating system has the file in memory, as after a restart of the process alone."""
    here, key = folder / "restore", past[-1].key
    async with sql_store(here, SqlStore) as store:
        await fill(store, past)
        clock = Ticks(past[-1].at)
        sessions = sessions_on(store, clock)
        talk = Talk(sessions, clock, PERSON, len(past) // STEPS_A_TURN)
        seq = (await sessions.state(key)).seq
        while seq % _EVERY + EVENTS_A_TURN < _EVERY:
            await talk.turns(1)
            seq += EVENTS_A_TURN
        stored = await store.load(key)
    killed = [await _restore(here, key) for _ in range(rounds)]
    async with sql_store(here, SqlStore) as store:
        sessions = sessions_on(store, clock)
        await sessions.state(key)
        await sessions.save_snapshots()
    stopped = [await _restore(here, key) for _ in range(rounds)]
    with closing(sqlite3.connect(here / "store.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM snapshots")
    from_log = [await _restore(here, key) for _ in range(min(rounds, 5))]
    return RestoreTimes(
        opening=median(opening for opening, _ in (*killed, *stopped)),
        stopped=median(loading for _, loading in stopped),
        killed=median(loading for _, loading in killed),
        tail=len(stored.log),
        from_log=median(loading for _, loading in from_log),
    )


async def _restore(folder: Path, key: str) -> tuple[float, float]:
    begin = perf_counter()
    async with sql_store(folder, SqlStore) as store:
        opened = perf_counter()
        await sessions_on(store, Ticks()).state(key)
        return opened - begin, perf_counter() - opened
