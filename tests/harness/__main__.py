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
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from storage.migrate import migrate
from tests.harness.blocks import Block, Database, Outcome, all_blocks
from tests.harness.crew import WORKERS, run_blocks
from tests.harness.database_matrix import run_database_faults
from tests.harness.fault_matrix import run_faults
from tests.harness.faults import FaultResult
from tests.harness.lab import zygote
from tests.harness.page import PARTS, Caught, Found, Part, Where, page
from tests.harness.towns import TOWNS
from tests.harness.worker import BASE
from tests.planted.kills import KILL_BUGS, KillBug, plant
from tests.planted.pairs import PAIR_BUGS
from tests.postgres import PostgresServer, running_postgres

PAGE = Path("docs/kill-matrix.md")
KEPT = Path("build/kill-matrix.json")
SERVICE = ("bots", "core", "storage", "scheduler")
ALL_BUGS = (*KILL_BUGS, *PAIR_BUGS)
FAULTS_SHOWN = 2
SHORT_PATIENCE = 25.0
"""Seconds for what a planted bug has lost, which never comes."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness", description=__doc__)
    parser.add_argument("--write", type=Path, default=PAGE, metavar="FILE")
    parser.add_argument("--keep", type=Path, default=KEPT, metavar="FILE", help="for --go-on")
    parser.add_argument("--go-on", action="store_true", help="with what an earlier run left")
    parser.add_argument("--only", type=int, default=0, metavar="N", help="cells a block; 0 for all")
    parser.add_argument("--scenario", default="", metavar="TEXT", help="only those named like this")
    parser.add_argument("--cell", default="", metavar="TEXT", help="only those named like this")
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], help="default: all of them")
    options = parser.parse_args(arguments)
    run = Run(options)
    for part in PARTS:
        if part in (options.part or PARTS):
            run.do(part)
    found = run.found
    _say(f"{found.cells} cells, {found.red} red; missed: {found.missed}")
    return int(bool(found.red or found.missed))


class Run:
    """Writes the page, and what it is made of, after each block: a long run that is cut short has
    not run in vain."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        known = options.go_on and options.keep.exists()
        kept = options.keep.read_bytes() if known else b"{}"
        self.found = msgspec.json.decode(kept, type=Found)
        few = f" {options.cell}" if options.cell else ""
        self._run = f"{_commit()}, {options.only or 'all'} cells a block{few}"
        self._began = time.monotonic()

    def do(self, part: Part) -> None:
        self._began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="matrix-") as name:
            match part:
                case "kills":
                    self._kill(Path(name))
                case "faults":
                    self._keep(part, faults=asyncio.run(_spoil(Path(name))))
                case "bugs":
                    wanted = self._options.scenario
                    bugs = [bug for bug in ALL_BUGS if wanted in f"{bug.scenario}, {bug.form}"]
                    only = self._options.only
                    with _databases() as port:
                        caught = asyncio.run(_catch(bugs, Path(name), port, only))
                    self._keep(part, caught=caught)

    def _kill(self, folder: Path) -> None:
        self._drop_others()
        known = {o.block for o in self.found.outcomes if not o.red and not o.trouble}
        wanted = [block for block in all_blocks() if self._options.scenario in str(block)]
        blocks = [block for block in wanted if block not in known]

        def told(outcome: Outcome) -> None:
            _tell(outcome)
            others = [o for o in self.found.outcomes if o.block != outcome.block]
            marked = replace(outcome, run=self._run)
            self._keep("kills", outcomes=[*others, marked])

        only, cell = self._options.only, self._options.cell
        with _databases() as port:
            asyncio.run(run_blocks(blocks, folder, told, pg_port=port, only=only, cell=cell))

    def _drop_others(self) -> None:
        """What was run of other code of the service, or on other cells, is no part of this matrix.
        A checker that was mended does not unmake what it was right about."""
        same = [o for o in self.found.outcomes if self._is_mine(o)]
        self.found = replace(self.found, outcomes=same)
        if same and "kills" in self.found.where:
            self._began -= self.found.where["kills"].minutes * 60

    def _is_mine(self, outcome: Outcome) -> bool:
        town = outcome.block.town
        return _of_run(outcome.run, town) == _of_run(self._run, town)

    def _keep(self, part: Part, **news: object) -> None:
        where = Where(
            commit=_commit(),
            date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            machine=f"{os.cpu_count()} cores, Python {platform.python_version()}",
            minutes=(time.monotonic() - self._began) / 60,
        )
        self.found = replace(self.found, where={**self.found.where, part: where}, **news)
        self._options.keep.parent.mkdir(parents=True, exist_ok=True)
        self._options.keep.write_bytes(msgspec.json.encode(self.found))
        self._options.write.write_text(page(self.found), encoding="utf-8")


@contextmanager
def _databases() -> Generator[int]:
    """The port of a PostgreSQL server with the database that cells copy."""

    async def make(server: PostgresServer) -> None:
        await server.execute(f'CREATE DATABASE "{BASE}"')
        await migrate(server.url(BASE))

    with running_postgres() as server:
        asyncio.run(make(server))
        yield server.port


async def _spoil(folder: Path) -> list[FaultResult]:
    async with zygote() as forks:
        results = await run_faults(forks, folder / "faults")
        results += await run_database_faults(forks, folder / "database faults")
    for result in results:
        if result.faults:
            _say(f"     {result.fault}, at {result.call}: {result.faults[:FAULTS_SHOWN]}")
    _say(f"{sum(bool(r.faults) for r in results):4} of {len(results):4} red  faults beside kills")
    return results


async def _catch(bugs: Iterable[KillBug], folder: Path, pg_port: int, only: int) -> list[Caught]:
    places = asyncio.Semaphore(WORKERS)

    async def one(number: int, bug: KillBug) -> Caught:
        root = folder / f"bug{number}"
        await asyncio.to_thread(plant, bug, root)
        alone = bug.form == "alone"
        database: Database = "sqlite" if alone else "postgresql"
        block = Block(scenario=bug.scenario, database=database, form=bug.form)
        async with places:
            (found,) = await run_blocks(
                [block],
                root / "cells",
                lambda outcome: None,
                pg_port=pg_port,
                only=only,
                root=root,
                patience=SHORT_PATIENCE,
            )
        caught = Caught(
            name=bug.name,
            scenario=bug.scenario,
            cells=len(found.results),
            red=[result.cell for result in found.red],
            at_once=bool(bug.says) and bug.says in found.trouble,
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

    others = (":!docs/kill-matrix.md", ":!docs/soak.md", ":!docs/chaos.md")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", *others).strip()
    return git("rev-parse", "--short", "HEAD").strip() + (" with changes" if changed else "")


@cache
def _of_run(run: str, town: str) -> tuple[str, ...]:
    """The service's files as they were, and the cells; without the packages of the platforms that
    have no part in that town."""
    commit, _, cells = run.partition(", ")
    found = subprocess.run(
        ["git", "ls-tree", "-r", commit, "--", *SERVICE],
        capture_output=True,
        text=True,
        check=False,
    )
    others = [f"\tbots/platforms/{name}/" for name in TOWNS if name != town]
    files = [line for line in found.stdout.splitlines() if not any(o in line for o in others)]
    return cells, *(files or [run])


if __name__ == "__main__":
    sys.exit(main())
