"""Processes that upgrade at the same moment, and one that is killed in the middle."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from core.errors import ConfigurationError
from storage.migrate import bring_up, migrate, open_database
from storage.store import SqlStore
from tests.contract.values import KEY, commit, log, said
from tests.revisions import ROOM_EVERYWHERE, future
from tests.storage.additions import schema

UPGRADE = """
import asyncio, sys
from pathlib import Path
from storage.migrate import bring_up, open_database
from tests.revisions import NEXT
from storage.revisions import OURS, Revisions
async def main():
    database = await open_database(sys.argv[1])
    ours = Revisions(Path(sys.argv[2]), (*OURS.names, NEXT), OURS.terms)
    await bring_up(database, ours, waiting=lambda: print("waiting", flush=True))
    print("done", flush=True)
    await database.close()
asyncio.run(main())
"""
HALT = "\n    print('half way', flush=True); import sys; sys.stdin.readline()\n"
HALF_WAY = ROOM_EVERYWHERE.replace("    op.create_table", f"{HALT}    op.create_table", 1)
"""Stands still with every table changed and nothing committed, until a line is given to it."""
PATIENCE = 30.0


class Upgrade:
    """A process that upgrades; it says how far it is, a word a line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def says(self) -> str:
        assert self.process.stdout is not None
        return (await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)).decode().strip()

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")

    async def ends(self) -> int:
        return await asyncio.wait_for(self.process.wait(), PATIENCE)


@asynccontextmanager
async def upgrading(url: str, folder: Path) -> AsyncGenerator[Upgrade]:
    pipe = asyncio.subprocess.PIPE
    words = (sys.executable, "-c", UPGRADE, url, str(folder))
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
    try:
        yield Upgrade(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
async def old_url(empty_url: str) -> str:
    store = await SqlStore.open(empty_url)
    await store.commit(commit(KEY, 0, said()))
    await store.close()
    return empty_url


async def test_a_kill_in_the_middle_leaves_the_old_revision(old_url: str, tmp_path: Path) -> None:
    database = await open_database(old_url)
    before = await database.read(schema)
    await database.close()
    newer = future(tmp_path / "f", HALF_WAY)
    async with upgrading(old_url, newer.folder) as killed:
        assert await killed.says() == "half way"
        killed.process.kill()
        assert await killed.ends() == -signal.SIGKILL
    store = await SqlStore.open(old_url)
    assert store.notes == ()
    assert await store.events(KEY) == log(1, said())
    await store.close()
    database = await open_database(old_url)
    assert await database.read(schema) == before
    await bring_up(database, future(tmp_path / "again"))
    assert "paints" in await database.read(schema)
    await database.close()


@pytest.mark.postgres
async def test_one_upgrades_and_the_other_waits(empty_postgres_url: str, tmp_path: Path) -> None:
    await migrate(empty_postgres_url)
    newer = future(tmp_path / "f", HALF_WAY)
    async with (
        upgrading(empty_postgres_url, newer.folder) as first,
        upgrading(empty_postgres_url, newer.folder) as second,
    ):
        said_first = {await first.says(), await second.says()}
        assert said_first == {"half way", "waiting"}
        for one in (first, second):
            one.go_on()
        assert [await first.says(), await second.says()] == ["done", "done"]
        assert [await first.ends(), await second.ends()] == [0, 0]


@pytest.mark.postgres
async def test_who_waits_takes_over_from_one_that_is_killed(
    empty_postgres_url: str, tmp_path: Path
) -> None:
    await migrate(empty_postgres_url)
    newer = future(tmp_path / "f", HALF_WAY)
    async with upgrading(empty_postgres_url, newer.folder) as first:
        assert await first.says() == "half way"
        async with upgrading(empty_postgres_url, newer.folder) as second:
            assert await second.says() == "waiting"
            first.process.kill()
            assert await second.says() == "half way"
            second.go_on()
            assert await second.says() == "done"
            assert await second.ends() == 0


@pytest.mark.postgres
async def test_an_upgrade_does_not_hold_up_those_who_work_for_long(
    empty_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All who come after it queue behind it, so it rather fails and changes nothing."""
    monkeypatch.setattr("storage.migrate._TABLE_LOCK_SECONDS", 1)
    await migrate(empty_postgres_url)
    database = await open_database(empty_postgres_url)
    reading, enough = asyncio.Event(), asyncio.Event()

    async def read_for_long() -> None:
        engine = create_async_engine(empty_postgres_url.replace(":", "+asyncpg:", 1))
        async with engine.connect() as connection:
            await connection.exec_driver_sql("SELECT * FROM streams")
            reading.set()
            await enough.wait()
        await engine.dispose()

    long = asyncio.create_task(read_for_long())
    await reading.wait()
    newer = future(tmp_path / "f")
    with pytest.raises(Exception, match="lock timeout"):
        await bring_up(database, newer)
    assert "paints" not in await database.read(schema)
    enough.set()
    await long
    await bring_up(database, newer)
    assert "paints" in await database.read(schema)
    await database.close()


async def test_a_file_that_another_process_upgrades_is_said_to_be_in_use(
    sqlite_url: str, tmp_path: Path
) -> None:
    await migrate(sqlite_url)
    newer = future(tmp_path / "f", HALF_WAY)
    async with upgrading(sqlite_url, newer.folder) as first:
        assert await first.says() == "half way"
        with pytest.raises(ConfigurationError, match=rf"in use .*pid {first.process.pid}"):
            await SqlStore.open(sqlite_url)
        first.go_on()
        assert await first.says() == "done"
        assert await first.ends() == 0
