"""Runs blocks one after the other, each cell by a fork of the real service; it judges no block.

``python -m tests.harness.worker ROOT`` is for the code under that folder. One JSON object a line.
In: an Order. Out: an Outcome. So two processes share the matrix, and each imports the service once.
"""

import asyncio
import itertools
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from storage.migrate import migrate
from tests.harness.blocks import Block, Outcome, firsts_of, scenario_of
from tests.harness.kills import Cell
from tests.harness.lab import Zygote, zygote
from tests.harness.matrix import (
    AT_A_TIME,
    PAIRS_AT_A_TIME,
    Ground,
    NewDatabase,
    NotReachedError,
    Runner,
)
from tests.harness.stage import PATIENCE
from tests.postgres import PostgresServer

BASE = "stillhere_base"
"""A PostgreSQL database that has its tables, to be copied."""
LONGEST_LINE = 2**26


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """``only`` is how many cells to run, spread over the block; 0 for all. ``cell`` is what their
    names have in them. ``pg_port`` is that of a PostgreSQL server with the database ``BASE``."""

    block: Block
    folder: str
    pg_port: int = 0
    only: int = 0
    cell: str = ""
    patience: float = PATIENCE


async def sqlite_databases(folder: Path) -> NewDatabase:
    """Copies of one file, since each start would make its tables anew otherwise."""
    base = folder / "base.db"
    if not base.exists():
        await migrate(f"sqlite:///{base}")

    @asynccontextmanager
    async def new(cell: Path) -> AsyncGenerator[str]:
        await asyncio.to_thread(shutil.copy, base, cell / "stillhere.db")
        yield f"sqlite:///{cell}/stillhere.db"

    return new


def postgres_databases(server: PostgresServer, numbers: Iterator[int]) -> NewDatabase:
    @asynccontextmanager
    async def new(cell: Path) -> AsyncGenerator[str]:
        name = f"cell_{os.getpid()}_{next(numbers)}"
        await server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{BASE}"')
        yield server.url(name)
        await server.drop_database(name)

    return new


class Worker:
    """Alembic's context is one for the whole process, so that there is one upgrade at a time."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._pairs = asyncio.Semaphore(PAIRS_AT_A_TIME)
        self._migrating = asyncio.Lock()
        self._numbers = itertools.count(1)

    async def run(self, order: Order) -> Outcome:
        block = order.block
        folder = Path(order.folder)
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        ground = Ground(
            zygote=self._zygote,
            folder=folder,
            database=await self._databases(order, folder),
            places=self._places if block.form == "alone" else self._pairs,
            environment={"DURABILITY": block.grade},
            town=block.town,
            form=block.form,
            patience=order.patience,
        )
        runner = Runner(ground, scenario_of(block.scenario))
        try:
            cells = await runner.count()
            if block.first:
                cells = await _second(runner, firsts_of(cells, block.first))
        except AssertionError as error:
            return Outcome(block=block, trouble=str(error)[-20000:])
        cells = [cell for cell in cells if order.cell in str(cell)]
        step = max(1, len(cells) // order.only) if order.only else 1
        return Outcome(block=block, results=await runner.run(cells[step // 2 :: step]))

    async def _databases(self, order: Order, folder: Path) -> NewDatabase:
        if order.block.database == "sqlite":
            async with self._migrating:
                return await sqlite_databases(folder)
        return postgres_databases(PostgresServer(folder, order.pg_port), self._numbers)


async def _second(runner: Runner, firsts: Sequence[Cell]) -> list[Cell]:
    for first in firsts:
        with suppress(NotReachedError):
            if cells := await runner.count(first):
                return cells
    raise AssertionError(f"none of {firsts} was reached")


async def _lines() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def main(root: Path) -> None:
    async with zygote(root) as forks:
        worker = Worker(forks)
        lines = await _lines()
        while line := await lines.readline():
            outcome = await worker.run(msgspec.json.decode(line, type=Order))
            sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
