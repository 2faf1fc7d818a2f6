"""Runs the storm and prints its tables; ends with 1 when there is something to complain of."""

import argparse
import asyncio
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.report import write_into
from storage.migrate import migrate
from tests.harness.chaos.fleet import Site
from tests.harness.chaos.page import as_markdown
from tests.harness.chaos.run import Outcome, Plan, chaos
from tests.harness.chaos.storm import Weather
from tests.harness.lab import ROOT, zygote
from tests.postgres import PostgresServer, running_postgres


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of storm")
    parser.add_argument("--users", type=int, default=40)
    parser.add_argument("--roles", default="all,all", help="of each replica")
    parser.add_argument("--lease", type=float, default=15.0, help="seconds")
    parser.add_argument("--calm", type=float, default=30.0, help="seconds before and after")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="blows whose names have this in them")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this page")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="the logs of a red run")
    options = parser.parse_args(arguments)
    whole = Weather()
    weather = Weather(
        seconds=60 * options.minutes, deck=tuple(one for one in whole.deck if options.only in one)
    )
    plan = Plan(people=options.users, calm=options.calm, weather=weather, seed=options.seed)
    roles, load = tuple(options.roles.split(",")), os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as folder,
        running_postgres() as server,
    ):
        outcome = asyncio.run(_storms(Path(folder), server, plan, roles, options.lease))
        remarks = [
            f"{datetime.now(UTC):%Y-%m-%d}, commit {_commit()}, PostgreSQL, Telegram, "
            f"seed {options.seed}: `python -m tests.harness.chaos`.",
            f"{os.cpu_count()} cores; {platform.system()} {platform.release()}; "
            f"Python {platform.python_version()}.",
            f"Load average {load:.2f} before, {os.getloadavg()[0]:.2f} after.",
        ]
        text = as_markdown(outcome, remarks)
        if options.keep and outcome.faults:
            shutil.copytree(folder, options.keep, dirs_exist_ok=True)
            (options.keep / "outcome.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    if options.write:
        write_into(options.write, text)
    return bool(outcome.faults)


async def _storms(
    folder: Path, server: PostgresServer, plan: Plan, roles: tuple[str, ...], lease: float
) -> Outcome:
    url = server.url(await server.new_database())
    await migrate(url)
    async with zygote() as ready:
        site = Site(folder=folder, server=server, url=url, roles=roles, lease=lease)
        return await chaos(ready, site, plan)


def _commit() -> str:
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
