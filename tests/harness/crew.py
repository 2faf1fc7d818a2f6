"""Hands blocks to worker processes and gathers what they found; it runs no cell itself."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from tests.harness.blocks import Block, Outcome
from tests.harness.lab import ROOT
from tests.harness.stage import PATIENCE
from tests.harness.worker import LONGEST_LINE, Order

WORKERS = 2

Told = Callable[[Outcome], None]


@asynccontextmanager
async def worker(root: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.harness.worker",
        str(root),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
    )
    try:
        yield process
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


async def run_order(process: asyncio.subprocess.Process, order: Order) -> Outcome:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(msgspec.json.encode(order) + b"\n")
    line = await process.stdout.readline()
    if not line:
        await process.wait()
        return Outcome(block=order.block, trouble="the worker died")
    return msgspec.json.decode(line, type=Outcome)


async def run_blocks(
    blocks: Iterable[Block],
    folder: Path,
    told: Told,
    *,
    pg_port: int = 0,
    only: int = 0,
    cell: str = "",
    patience: float = PATIENCE,
    root: Path = ROOT,
    workers: int = WORKERS,
) -> list[Outcome]:
    """In the order of the blocks. ``told`` hears of each as soon as it is through."""
    waiting = list(enumerate(blocks))
    found: dict[int, Outcome] = {}

    async def work() -> None:
        while waiting:
            async with worker(root) as process:
                await serve(process)

    async def serve(process: asyncio.subprocess.Process) -> None:
        """Until nothing is left, or the worker has died: then another takes its place."""
        while waiting and process.returncode is None:
            number, block = waiting.pop(0)
            order = Order(
                block=block,
                folder=str(folder / f"block{number}"),
                pg_port=pg_port,
                only=only,
                cell=cell,
                patience=patience,
            )
            found[number] = await run_order(process, order)
            told(found[number])

    async with asyncio.TaskGroup() as group:
        for _ in range(min(workers, len(waiting))):
            group.create_task(work())
    return [found[number] for number in sorted(found)]
