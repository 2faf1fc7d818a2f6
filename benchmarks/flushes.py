"""How often the disk is flushed for a step; strace counts from outside, where it is there."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from benchmarks.crowd import PEOPLE, talks
from benchmarks.filling import sql_store
from benchmarks.raw import made
from benchmarks.talk import STEPS_A_TURN
from storage.store import SqlStore

_CALLS = ("fsync", "fdatasync", "sync_file_range")


class Flushes(msgspec.Struct, frozen=True):
    """A step, alone and with 100 sessions; None where it cannot be counted."""

    alone: float | None
    crowd: float | None


async def measure(folder: Path, turns: int, people: int = PEOPLE) -> Flushes:
    """Opening and closing are counted, too, and taken off again."""
    strace = shutil.which("strace")
    if strace is None:
        return Flushes(None, None)
    idle = await _count(strace, folder / "flushes-idle", 0, 0)
    alone = await _count(strace, folder / "flushes-alone", 1, turns * people)
    crowd = await _count(strace, folder / "flushes-crowd", people, turns)
    if idle is None or alone is None or crowd is None:
        return Flushes(None, None)
    steps = turns * people * STEPS_A_TURN
    return Flushes((alone - idle) / steps, (crowd - idle) / steps)


async def _count(strace: str, folder: Path, people: int, turns: int) -> int | None:
    """None where processes may not be traced."""
    notes = made(folder) / "strace"
    child = [sys.executable, "-m", "benchmarks.flushes", str(folder), str(people), str(turns)]
    watch = [strace, "-f", "--seccomp-bpf", "-e", f"trace={','.join(_CALLS)}", "-o", str(notes)]
    process = await asyncio.create_subprocess_exec(*watch, *child, stderr=subprocess.DEVNULL)
    if await process.wait() != 0:
        return None
    lines = notes.read_text().splitlines()
    return sum(1 for line in lines if any(f"{call}(" in line for call in _CALLS))


async def _child(folder: Path, people: int, turns: int) -> None:
    async with sql_store(folder, SqlStore) as store:
        await asyncio.gather(*talks(store, turns, people))


if __name__ == "__main__":
    asyncio.run(_child(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
