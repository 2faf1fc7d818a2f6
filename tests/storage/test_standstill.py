"""A process that is stopped (SIGSTOP) in the middle of a transaction holds up nobody for long."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import psutil
import pytest
import sqlalchemy as sa

from core.errors import StorageError
from storage.postgres import PostgresDatabase, open_postgres
from storage.store import SqlStore
from storage.tables import facts
from storage.url import PostgresUrl, parse_url
from storage.way import Patience
from tests.bots.life import until
from tests.command import ROOT

pytestmark = pytest.mark.postgres

BLOCKED = 1.0
WITHIN = 8.0
"""Seconds: a machine may be slow."""
LONG = "60"


@asynccontextmanager
async def standing(url: str, where: str, seconds: str = LONG) -> AsyncGenerator[Process]:
    """One that has a row and stands still. ``seconds``: the server's own patience with it."""
    store = await SqlStore.open(url)
    await store.set_fact("held", "by nobody")
    await store.close()
    arguments = (sys.executable, "-m", "tests.storage.standing", url, where, seconds)
    process = await asyncio.create_subprocess_exec(*arguments, cwd=ROOT, stdout=PIPE)
    try:
        seen = psutil.Process(process.pid)
        await until(lambda: seen.status() == psutil.STATUS_STOPPED)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def database(url: str, blocked: float = BLOCKED) -> AsyncGenerator[PostgresDatabase]:
    parsed = parse_url(url)
    assert isinstance(parsed, PostgresUrl)
    opened = await open_postgres(parsed, pool_size=1, patience=Patience(blocked=blocked))
    try:
        yield opened
    finally:
        await opened.close()


async def take(opened: PostgresDatabase) -> None:
    taken = sa.update(facts).where(facts.c.name == "held").values(value="by us")
    async with asyncio.timeout(WITHIN):
        await opened.write(lambda link: link.execute(taken).close())


async def held(opened: PostgresDatabase) -> str | None:
    wanted = sa.select(facts.c.value).where(facts.c.name == "held")
    return await opened.read(lambda link: link.execute(wanted).scalar())


async def woken(process: Process) -> str:
    process.send_signal(signal.SIGCONT)
    out, _ = await process.communicate()
    return out.decode().strip()


async def test_the_server_ends_one_that_stands_still_between_statements(postgres_url: str) -> None:
    async with (
        standing(postgres_url, "between", seconds="1") as other,
        database(postgres_url, blocked=60.0) as here,
    ):
        await take(here)
        assert await woken(other) == "failed"
        assert await held(here) == "by us"


@pytest.mark.parametrize("where", ["between", "sending", "receiving"])
async def test_who_waits_ends_one_that_stands_still(postgres_url: str, where: str) -> None:
    async with standing(postgres_url, where) as other, database(postgres_url) as here:
        await take(here)
        assert await woken(other) == "failed"
        assert await held(here) == "by us"


async def test_one_that_works_is_waited_for(postgres_url: str) -> None:
    """Its process stands still, which cannot be seen while the server is at work for it."""
    async with standing(postgres_url, "working") as other:
        process_woken = asyncio.create_task(_later(other))
        async with database(postgres_url, blocked=0.5) as here:
            await take(here)
            assert await process_woken == "stored"


async def _later(process: Process) -> str:
    await asyncio.sleep(2.0)
    return await woken(process)


async def test_a_stranger_is_not_ended(postgres_url: str) -> None:
    """Of the same user, but under another name: an operator at a prompt."""
    stranger = f"{postgres_url}?application_name=psql"
    async with standing(stranger, "between") as other, database(postgres_url) as here:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(BLOCKED * 4):
                await take(here)
        assert await woken(other) == "stored"


async def test_nobody_waits_for_ever(postgres_url: str) -> None:
    """Whoever it is that does not let go."""
    parsed = parse_url(postgres_url)
    assert isinstance(parsed, PostgresUrl)
    here = await open_postgres(parsed, patience=Patience(statement=1.0))
    async with standing(f"{postgres_url}?application_name=psql", "between"):
        with pytest.raises(StorageError, match="timeout"):
            await take(here)
    await here.close()
