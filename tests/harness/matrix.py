"""Runs the scenario over many cells, some at a time; says what a user could complain of in each."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.harness.lab import NO_KILL, Cell, Lab, Zygote
from tests.harness.talk import Talk, faults_of

AT_A_TIME = 5
CELL_SECONDS = 240.0
"""A cell that hangs is a fault to be told, not a run that never ends."""


class Result(msgspec.Struct, frozen=True):
    """``doubled`` where Telegram could not be asked and one message came twice, as promised."""

    cell: Cell
    faults: list[str]
    killed: bool
    doubled: bool


async def count(zygote: Zygote, folder: Path, database: str) -> list[Cell]:
    """The cells of one run without a kill, which must itself be without fault."""
    await asyncio.to_thread(folder.mkdir)
    async with Lab(zygote, folder, database, NO_KILL) as lab:
        talk = Talk(lab)
        await talk.run()
        found = faults_of(talk, NO_KILL)
        cells = lab.cells()
    assert not found, found
    return cells


async def run_cell(zygote: Zygote, folder: Path, database: str, cell: Cell) -> Result:
    await asyncio.to_thread(folder.mkdir)
    async with Lab(zygote, folder, database, cell) as lab:
        talk = Talk(lab)
        try:
            async with asyncio.timeout(CELL_SECONDS):
                await talk.run()
            found = faults_of(talk, cell)
        except (AssertionError, TimeoutError) as error:
            found = [f"{error}"[:300], *faults_of(talk, cell), lab.log()[-3000:]]
    texts = talk.ada.bot_texts()
    return Result(cell, found, lab.died > 0, len(set(texts)) < len(texts))


async def run_cells(
    zygote: Zygote, folder: Path, databases: Sequence[str], cells: Sequence[Cell]
) -> list[Result]:
    """One database a cell, in order."""
    places = asyncio.Semaphore(AT_A_TIME)

    async def one(number: int, cell: Cell) -> Result:
        async with places:
            return await run_cell(zygote, folder / f"cell{number}", databases[number], cell)

    return await asyncio.gather(*(one(n, cell) for n, cell in enumerate(cells)))
