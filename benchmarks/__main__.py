"""Measures and prints; an aim that is missed is shown, and is no error."""

import argparse
import asyncio
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks import counting, crowd, disk, flushes, life, replicas, restore, steps, wakeups
from benchmarks.report import (
    BEGIN,
    END,
    LIFE_BEGIN,
    LIFE_END,
    Line,
    Lived,
    Measured,
    as_markdown,
    life_lines,
    lines,
    write_into,
)
from benchmarks.report_processes import (
    REPLICAS_BEGIN,
    REPLICAS_END,
    WAKEUPS_BEGIN,
    WAKEUPS_END,
    replica_lines,
    wakeup_lines,
)
from benchmarks.talk import MESSAGES_A_TURN, STEPS_A_TURN, taped


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """``history`` in messages; rounds are repetitions, of which the median counts. ``told`` and
    ``polled`` are messages that another process hears of by NOTIFY, and without it."""

    history: tuple[int, ...] = (0, 1_000, 10_000)
    step_rounds: int = 200
    people: int = 100
    turns: int = 6
    crowd_rounds: int = 5
    restore_rounds: int = 25
    life: int = 10_000
    span: int = 1_000
    window: int = 8_000
    counted: tuple[int, ...] = (8_000, 100_000)
    count_rounds: int = 5
    turns_at_once: tuple[int, ...] = (8, 16, 64)
    load_seconds: float = 15.0
    rest_seconds: float = 60.0
    told: int = 250
    polled: int = 60


QUICK = Sizes(
    history=(0, 8, 40),
    step_rounds=2,
    people=3,
    turns=2,
    crowd_rounds=1,
    restore_rounds=2,
    life=72,
    span=24,
    counted=(100, 1_000),
    count_rounds=1,
    turns_at_once=(2,),
    load_seconds=1.0,
    rest_seconds=1.0,
    told=3,
    polled=0,
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: only shows that it runs")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="on the disk to measure")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this page")
    parser.add_argument("--only", choices=tuple(TABLES), help="one of the tables")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    sizes = QUICK if options.quick else Sizes()
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.folder) as folder:
        for name, (work, begin, end) in TABLES.items():
            if options.only not in (None, name):
                continue
            before = os.getloadavg()[0]
            rows = asyncio.run(work(Path(folder), sizes))
            text = as_markdown(rows, _remarks(options, before))
            print(text)
            if options.write:
                write_into(options.write, text, begin, end)


async def of_steps(folder: Path, sizes: Sizes) -> list[Line]:
    return lines(await measure(folder, sizes))


async def of_life(folder: Path, sizes: Sizes) -> list[Line]:
    return life_lines(await live(folder, sizes))


async def of_replicas(folder: Path, sizes: Sizes) -> list[Line]:
    _say("several processes")
    found = await replicas.measure(
        folder, sizes.turns_at_once, sizes.load_seconds, sizes.rest_seconds
    )
    return replica_lines(found)


async def of_wakeups(folder: Path, sizes: Sizes) -> list[Line]:
    _say("wake-ups")
    return wakeup_lines(await wakeups.measure(folder, sizes.told, sizes.polled))


TABLES = {
    "steps": (of_steps, BEGIN, END),
    "life": (of_life, LIFE_BEGIN, LIFE_END),
    "replicas": (of_replicas, REPLICAS_BEGIN, REPLICAS_END),
    "wakeups": (of_wakeups, WAKEUPS_BEGIN, WAKEUPS_END),
}


def _remarks(options: argparse.Namespace, before: float) -> list[str]:
    only = f" --only {options.only}" if options.only else ""
    remarks = [
        *_where(f"python -m benchmarks{only}"),
        f"Load average {before:.2f} before, {os.getloadavg()[0]:.2f} after.",
    ]
    if options.quick:
        remarks.append("Small sizes, to see that it runs: the numbers below mean nothing.")
    return remarks


async def measure(folder: Path, sizes: Sizes) -> Measured:
    past, payload = await taped(sizes.history[-1] // MESSAGES_A_TURN)
    pasts = {size: past[: size // MESSAGES_A_TURN * STEPS_A_TURN] for size in sizes.history}
    _say("steps alone")
    alone = await steps.measure(folder, pasts, sizes.step_rounds)
    _say("many sessions")
    many = await crowd.measure(folder, sizes.turns, sizes.crowd_rounds, sizes.people)
    _say("flushes")
    flushed = await flushes.measure(folder, sizes.turns, sizes.people)
    _say("bytes on disk")
    used = await disk.measure(folder, past, payload)
    _say("restoring")
    restored = await restore.measure(folder, past, sizes.restore_rounds)
    return Measured(steps=alone, crowd=many, flushes=flushed, disk=used, restore=restored)


async def live(folder: Path, sizes: Sizes) -> Lived:
    _say("a long conversation")
    lived = await life.measure(folder, sizes.life, sizes.span, sizes.window)
    _say("counting tokens")
    counted = await counting.measure(sizes.counted, sizes.count_rounds)
    return Lived(life=lived, counting=counted)


def _say(what: str) -> None:
    print(f"measuring {what} …", file=sys.stderr)


def _where(command: str) -> list[str]:
    cpu = platform.processor() or platform.machine()
    for line in _read("/proc/cpuinfo"):
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    return [
        f"{datetime.now(UTC):%Y-%m-%d}, `{command}`.",
        f"{os.cpu_count()} cores of {cpu}; {platform.system()} {platform.release()}.",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}.",
    ]


def _read(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


if __name__ == "__main__":
    main()
