"""Runs errands while their database fails at one write; the service is never started again."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import msgspec

from storage.migrate import migrate
from tests.harness.database_faults import (
    POSTGRES_FAULTS,
    SQLITE_FAULTS,
    DatabaseFault,
    Site,
    small_disk,
)
from tests.harness.fault_matrix import (
    NOTICE_SECONDS,
    PATIENCE,
    Watched,
    complaints,
    is_ready,
    is_unready,
    outcome_of,
    talk,
    unready,
    watching,
)
from tests.harness.faults import ERRANDS, Errand, FaultResult
from tests.harness.lab import Lab, Place, Zygote
from tests.harness.matrix import CELL_SECONDS, LEASE, LOG_TAIL
from tests.harness.stage import Stage
from tests.postgres import PostgresServer, running_postgres

LANES = 3
NewSite = Callable[[], Awaitable[Site]]
"""A database with its tables, one at a time."""


class DatabaseCell(msgspec.Struct, frozen=True, kw_only=True):
    """The ``number``-th write of the store, by what it is."""

    number: int
    write: str
    fault: DatabaseFault

    def __str__(self) -> str:
        return f"{self.fault.name}, at write {self.number} ({self.write})"


class DatabaseRunner:
    """Each of the ``sites`` has one lab at a time."""

    def __init__(
        self, zygote: Zygote, folder: Path, errand: Errand, sites: Sequence[NewSite]
    ) -> None:
        self._zygote = zygote
        self._folder = folder
        self._errand = errand
        self._sites: asyncio.Queue[NewSite] = asyncio.Queue()
        self._number = 0
        for site in sites:
            self._sites.put_nowait(site)

    async def cells(self, faults: Sequence[DatabaseFault]) -> list[DatabaseCell]:
        """Of the writes up to the answer, in a run without a fault."""
        writes: list[str] = []
        new_site = await self._sites.get()
        async with await self._lab(await new_site(), halt=0) as lab:
            stage = Stage(lab)

            async def note() -> None:
                await lab.settled(PATIENCE)
                writes.extend(write.name for write in lab.writes()[1] if not write.done)

            await talk(stage, self._errand, note)
            await lab.down()
            found, _ = await complaints(stage, self._errand, 0)
        self._sites.put_nowait(new_site)
        assert not found, (found, lab.log()[-LOG_TAIL:])
        return [
            DatabaseCell(number=number, write=write, fault=fault)
            for fault in faults
            for number, write in enumerate(writes, 1)
        ]

    async def run(self, cells: Sequence[DatabaseCell]) -> list[FaultResult]:
        async def one(cell: DatabaseCell) -> FaultResult:
            new_site = await self._sites.get()
            try:
                return await self._run(cell, await new_site())
            finally:
                self._sites.put_nowait(new_site)

        return await asyncio.gather(*map(one, cells))

    async def _lab(self, site: Site, halt: int) -> Lab:
        self._number += 1
        folder = self._folder / f"{self._errand.name}{self._number}"
        await asyncio.to_thread(folder.mkdir, parents=True)
        place = Place(
            folder=folder,
            database=site.url,
            environment=dict(self._errand.environment),
            lease=LEASE,
            webhook=self._errand.webhook,
            halt=halt,
        )
        return Lab(self._zygote, place)

    async def _run(self, cell: DatabaseCell, site: Site) -> FaultResult:
        began = asyncio.get_running_loop().time()
        found, seen, told, extra = list[str](), Watched(), False, 0
        async with await self._lab(site, cell.number) as lab:
            stage = Stage(lab)
            try:
                async with asyncio.timeout(CELL_SECONDS), watching(lab) as seen:
                    begun = asyncio.Event()
                    striking = asyncio.create_task(_struck(lab, site, cell.fault, begun))
                    told = await talk(stage, self._errand, partial(_over, begun, striking))
                    await striking
                    await lab.settled(PATIENCE)
                await lab.down()
            except (AssertionError, TimeoutError) as error:
                found.append(f"not finished: {error!r}"[:1500])
            more, extra = await complaints(stage, self._errand, 0, told=told)
            found += [*more, *_of_readiness(cell, seen)]
            log = lab.log()
        if not found:
            await asyncio.to_thread(shutil.rmtree, lab.folder, ignore_errors=True)
        return FaultResult(
            scenario=self._errand.name,
            call=f"write {cell.number} {cell.write}",
            fault=cell.fault.name,
            outcome=outcome_of(found, told, extra),
            faults=[*found, log[-LOG_TAIL:]] if found else [],
            said=unready(seen),
            seconds=asyncio.get_running_loop().time() - began,
        )


async def _over(begun: asyncio.Event, striking: asyncio.Task[None]) -> None:
    """A write that the run had no need of comes with the next message."""
    if begun.is_set():
        await striking


async def _struck(lab: Lab, site: Site, fault: DatabaseFault, begun: asyncio.Event) -> None:
    """The same process is there before and after; that it was, its exit code says in the end."""
    flag = await lab.halted(PATIENCE)
    begun.set()
    async with fault.strike(lab, site):
        flag.unlink()
        await asyncio.sleep(fault.seconds)
        if fault.noticed:
            await is_unready(lab, NOTICE_SECONDS)
    await is_ready(lab)


def _of_readiness(cell: DatabaseCell, seen: Watched) -> list[str]:
    said = [text for text in unready(seen) if "cannot be written" in text]
    if cell.fault.noticed and not said:
        return [f"the database was away, and nobody said so: {unready(seen)}"]
    return []


@asynccontextmanager
async def sqlite_sites(folder: Path) -> AsyncGenerator[tuple[list[NewSite], str]]:
    """Each on a small disk of its own; with a text why not, where nothing can be mounted."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    base = folder / "base.db"
    await migrate(f"sqlite:///{base}")
    disks = [folder / f"disk{number}" for number in range(LANES)]
    with ExitStack() as stack:
        words = [stack.enter_context(small_disk(disk)) for disk in disks]
        yield [_on_disk(base, disk) for disk in disks], next(filter(None, words), "")


def _on_disk(base: Path, disk: Path) -> NewSite:
    def fresh() -> Site:
        for old in disk.iterdir():
            old.unlink()
        return Site(url=f"sqlite:///{shutil.copy(base, disk / 'stillhere.db')}")

    async def new_site() -> Site:
        return await asyncio.to_thread(fresh)

    return new_site


@contextmanager
def postgres_sites(number: int = LANES) -> Generator[list[NewSite]]:
    """Each with a server of its own."""
    with ExitStack() as stack:
        servers = [stack.enter_context(running_postgres()) for _ in range(number)]
        one_at_a_time = asyncio.Lock()
        yield [_on_server(server, one_at_a_time) for server in servers]


def _on_server(server: PostgresServer, one_at_a_time: asyncio.Lock) -> NewSite:
    """Alembic's context is one for the whole process: two upgrades side by side would mix."""

    async def new_site() -> Site:
        url = server.url(await server.new_database())
        async with one_at_a_time:
            await migrate(url)
        return Site(url=url, server=server)

    return new_site


async def run_database_faults(zygote: Zygote, folder: Path) -> list[FaultResult]:
    """Every fault of both databases at every write, of all errands."""
    async with sqlite_sites(folder / "disks") as (disks, why_not):
        assert not why_not, why_not
        results = await _run_all(zygote, folder / "sqlite", disks, SQLITE_FAULTS)
    with postgres_sites() as servers:
        return results + await _run_all(zygote, folder / "postgres", servers, POSTGRES_FAULTS)


async def _run_all(
    zygote: Zygote, folder: Path, sites: Sequence[NewSite], faults: Sequence[DatabaseFault]
) -> list[FaultResult]:
    results: list[FaultResult] = []
    for errand in ERRANDS:
        runner = DatabaseRunner(zygote, folder, errand, sites)
        results += await runner.run(await runner.cells(faults))
    return results
