"""Runs the soak and prints its table; ends with 1 when there is something to complain of."""

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.report import write_into
from storage.migrate import migrate
from tests.harness.lab import ROOT, Place, zygote
from tests.harness.soak.page import as_markdown
from tests.harness.soak.run import Outcome, Plan, soak
from tests.postgres import running_postgres

KILLS_A_MINUTE = 6


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="with kills")
    parser.add_argument("--users", type=int, default=30)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this page")
    options = parser.parse_args(arguments)
    seconds = 60 * options.minutes
    plan = Plan(
        people=options.users,
        seconds=seconds,
        kills=int(options.minutes * KILLS_A_MINUTE),
        calm=seconds / 6,
        seed=options.seed,
    )
    load = os.getloadavg()[0]
    outcome = _run(plan, options.database)
    remarks = [
        f"{datetime.now(UTC):%Y-%m-%d}, commit {_commit()}, {options.database}, "
        f"seed {options.seed}: `python -m tests.harness.soak`.",
        f"{os.cpu_count()} cores; {platform.system()} {platform.release()}; "
        f"Python {platform.python_version()}.",
        f"Load average {load:.2f} before, {os.getloadavg()[0]:.2f} after.",
    ]
    text = as_markdown(outcome, remarks)
    sys.stdout.write(text)
    if options.write:
        write_into(options.write, text)
    return bool(outcome.faults)


def _run(plan: Plan, database: str) -> Outcome:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        if database == "sqlite":
            return asyncio.run(_soaks(folder, f"sqlite:///{folder}/stillhere.db", plan))
        server = stack.enter_context(running_postgres())
        name = asyncio.run(server.new_database())
        return asyncio.run(_soaks(folder, server.url(name), plan))


async def _soaks(folder: Path, url: str, plan: Plan) -> Outcome:
    await migrate(url)
    async with zygote() as ready:
        return await soak(ready, Place(folder=folder, database=url), plan)


def _commit() -> str:
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
