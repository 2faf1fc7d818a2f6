"""The whole kill matrix: every block, then every planted bug; ``make matrix``.

It prints a line a block, writes the page, and ends with 1 when a cell is red, or a planted bug
turns none.
"""

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from storage.migrate import migrate
from tests.harness.blocks import Block, Outcome, all_blocks
from tests.harness.crew import WORKERS, run_blocks
from tests.harness.database_matrix import run_database_faults
from tests.harness.fault_matrix import run_faults
from tests.harness.faults import FaultResult
from tests.harness.lab import zygote
from tests.harness.page import PARTS, Caught, Found, Part, Where, page
from tests.harness.worker import BASE
from tests.planted.kills import KILL_BUGS, KillBug, plant
from tests.postgres import PostgresServer, running_postgres

PAGE = Path("docs/kill-matrix.md")
KEPT = Path("build/kill-matrix.json")
FAULTS_SHOWN = 2
SHORT_PATIENCE = 25.0
"""Seconds for what a planted bug has lost, which never comes."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness", description=__doc__)
    parser.add_argument("--write", type=Path, default=PAGE, metavar="FILE")
    parser.add_argument("--keep", type=Path, default=KEPT, metavar="FILE", help="between parts")
    parser.add_argument("--only", type=int, default=0, metavar="N", help="cells a block; 0 for all")
    parser.add_argument("--scenario", default="", metavar="TEXT", help="only those named like this")
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], help="default: all of them")
    options = parser.parse_args(arguments)
    parts: Sequence[Part] = options.part or PARTS
    found = _kept(options.keep) if options.part else Found()
    for part in PARTS:
        if part in parts:
            found = _ran(part, found, options)
            options.keep.parent.mkdir(parents=True, exist_ok=True)
            options.keep.write_bytes(msgspec.json.encode(found))
            options.write.write_text(page(found), encoding="utf-8")
    _say(f"{found.cells} cells, {found.red} red; missed: {found.missed}")
    return int(bool(found.red or found.missed))


def _kept(file: Path) -> Found:
    return msgspec.json.decode(file.read_bytes(), type=Found) if file.exists() else Found()


def _ran(part: Part, found: Found, options: argparse.Namespace) -> Found:
    """With what the part found in the place of what it had found before."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="matrix-") as name:
        folder = Path(name)
        match part:
            case "kills":
                found = replace(found, outcomes=_killed(folder, options))
            case "faults":
                found = replace(found, faults=asyncio.run(_spoil(folder)))
            case "bugs":
                bugs = [bug for bug in KILL_BUGS if options.scenario in bug.scenario]
                found = replace(found, caught=asyncio.run(_catch(bugs, folder)))
    where = Where(
        commit=_commit(),
        date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        machine=f"{os.cpu_count()} cores, Python {platform.python_version()}",
        minutes=(time.monotonic() - began) / 60,
    )
    return replace(found, where={**found.where, part: where})


def _killed(folder: Path, options: argparse.Namespace) -> list[Outcome]:
    blocks = [block for block in all_blocks() if options.scenario in block.scenario]

    async def run(server: PostgresServer) -> list[Outcome]:
        await server.execute(f'CREATE DATABASE "{BASE}"')
        await migrate(server.url(BASE))
        return await run_blocks(blocks, folder, _tell, pg_port=server.port, only=options.only)

    with running_postgres() as server:
        return asyncio.run(run(server))


async def _spoil(folder: Path) -> list[FaultResult]:
    async with zygote() as forks:
        results = await run_faults(forks, folder / "faults")
        results += await run_database_faults(forks, folder / "database faults")
    for result in results:
        if result.faults:
            _say(f"     {result.fault}, at {result.call}: {result.faults[:FAULTS_SHOWN]}")
    _say(f"{sum(bool(r.faults) for r in results):4} of {len(results):4} red  faults beside kills")
    return results


async def _catch(bugs: Iterable[KillBug], folder: Path) -> list[Caught]:
    places = asyncio.Semaphore(WORKERS)

    async def one(number: int, bug: KillBug) -> Caught:
        root = folder / f"bug{number}"
        await asyncio.to_thread(plant, bug, root)
        block = Block(scenario=bug.scenario, database="sqlite")
        async with places:
            (found,) = await run_blocks(
                [block], root / "cells", lambda outcome: None, root=root, patience=SHORT_PATIENCE
            )
        caught = Caught(
            name=bug.name,
            scenario=bug.scenario,
            cells=len(found.results),
            red=[result.cell for result in found.red],
            trouble=found.trouble,
        )
        why = found.trouble[:300]
        _say(f"{len(caught.red):4} of {caught.cells:4} red  planted: {bug.name} {why}")
        return caught

    return await asyncio.gather(*(one(number, bug) for number, bug in enumerate(bugs)))


def _tell(outcome: Outcome) -> None:
    _say(f"{len(outcome.red):4} of {len(outcome.results):4} red  {outcome.block}")
    for result in outcome.red:
        _say(f"     {result.cell}: {result.faults[:FAULTS_SHOWN]}")
    if outcome.trouble:
        _say(f"     not run: {outcome.trouble}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout

    changed = git("status", "--porcelain", "--untracked-files=no").strip()
    return git("rev-parse", "--short", "HEAD").strip() + (" with changes" if changed else "")


if __name__ == "__main__":
    sys.exit(main())
