"""Behind a pooler in transaction mode: each transaction may come to another session of the server.
The real PgBouncer is tried as well where the machine has it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from core.errors import ConfigurationError
from core.ports import Notification
from storage.migrate import open_database
from storage.store import SqlStore
from tests.command import run
from tests.contract.values import at, commit, lease, letter, said
from tests.pooler import KINDS, POOL
from tests.postgres import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture(params=KINDS)
async def pooled_url(
    request: pytest.FixtureRequest, postgres_server: PostgresServer, empty_postgres_url: str
) -> AsyncIterator[str]:
    async with KINDS[request.param](postgres_server.port) as port:
        name = empty_postgres_url.rpartition("/")[2]
        yield f"postgres://postgres@127.0.0.1:{port}/{name}?sslmode=disable"


@pytest.mark.parametrize("told", ["&pgbouncer=true", ""])
async def test_everything_works_whether_the_address_tells_of_it_or_not(
    pooled_url: str, told: str
) -> None:
    store = await SqlStore.open(pooled_url + told)
    assert any("pooler" in note for note in store.notes) is (told == "")
    keys = [f"k{n}" for n in range(20)]
    for seq in range(3):
        letters = {key: (letter(f"{key}@{seq}", key),) for key in keys}
        await asyncio.gather(
            *(store.commit(commit(key, seq, said(), outbox=letters[key])) for key in keys),
            *(store.fact("nothing") for _ in keys),
        )
    assert {info.seq for info in await store.streams()} == {3}
    assert len(await store.claim(at(), lease())) == len(keys)
    sha = await store.keep_file(b"x" * 100_000)
    assert await store.file(sha) == b"x" * 100_000
    await store.close()


async def test_its_time_limits_hold_within_a_transaction_and_for_nobody_else(
    pooled_url: str,
) -> None:
    names = ("statement_timeout", "idle_in_transaction_session_timeout", "application_name")
    shown = sa.select(*(sa.func.current_setting(name) for name in names))
    database = await open_database(f"{pooled_url}&pgbouncer=true")
    for _ in range(POOL * 2):
        found = await database.read(lambda link: tuple(link.execute(shown).one()))
        assert found == ("15s", "15s", "stillhere")
    await database.close()
    for _ in range(POOL * 2):
        other = await asyncpg.connect(pooled_url, statement_cache_size=0)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        assert await other.fetchval("SHOW statement_timeout") == "0"  # pyright: ignore[reportUnknownMemberType]
        await other.close()  # pyright: ignore[reportUnknownMemberType]


async def test_who_only_looks_cannot_write(pooled_url: str) -> None:
    await (await SqlStore.open(pooled_url)).close()
    reader = await SqlStore.open(pooled_url, read_only=True)
    with pytest.raises(Exception, match="read-only"):
        await reader.set_fact("a", "b")
    assert await reader.fact("a") is None
    await reader.close()


async def test_what_others_do_is_heard_past_it(pooled_url: str, empty_postgres_url: str) -> None:
    here = await SqlStore.open(pooled_url, direct=empty_postgres_url)
    there = await SqlStore.open(pooled_url)
    heard = asyncio.Queue[Notification]()
    task = asyncio.create_task(here.listen(heard.put_nowait))
    async with asyncio.timeout(10):
        assert await heard.get() == Notification("all")
        await there.commit(commit("k", 0, said(), open_turn=True))
        assert (await heard.get()).kind == "turn"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await here.close()
    await there.close()


async def test_where_no_way_leads_past_it_that_is_said(pooled_url: str) -> None:
    store = await SqlStore.open(pooled_url)
    with capture_logs() as lines:
        task = asyncio.create_task(store.listen(lambda told: None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert any("DIRECT_DATABASE_URL" in str(line) for line in lines)
    await store.close()


async def test_a_database_that_is_not_there_is_the_operators_to_mend(pooled_url: str) -> None:
    with pytest.raises(ConfigurationError, match="DATABASE_URL"):
        await SqlStore.open(pooled_url.replace("/test_", "/nowhere_"))


async def test_migrate_and_doctor_work_through_it(pooled_url: str, tmp_path: Path) -> None:
    def stillhere(command: str) -> str:
        return run(tmp_path, command, DATABASE_URL=pooled_url).stdout

    assert "up to date" in await asyncio.to_thread(stillhere, "migrate")
    assert "ok   database: readable" in await asyncio.to_thread(stillhere, "doctor")
