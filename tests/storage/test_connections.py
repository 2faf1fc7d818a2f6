"""What becomes of connections to a PostgreSQL: they are few, they die, and some die silently."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

import pytest
import sqlalchemy as sa

from core.errors import ConfigurationError, StorageError
from storage.migrate import migrate
from storage.postgres import PostgresDatabase, open_postgres
from storage.store import SqlStore
from storage.url import PostgresUrl, parse_url
from storage.way import Patience
from tests.contract.values import commit, said
from tests.postgres import PostgresServer
from tests.wire import wire

pytestmark = pytest.mark.postgres

ONE = sa.select(sa.literal(1))


@asynccontextmanager
async def database(
    url: str, pool_size: int = 5, patience: Patience | None = None
) -> AsyncGenerator[PostgresDatabase]:
    parsed = parse_url(url)
    assert isinstance(parsed, PostgresUrl)
    opened = await open_postgres(parsed, pool_size=pool_size, patience=patience)
    try:
        yield opened
    finally:
        await opened.close()


async def value(opened: PostgresDatabase, wanted: sa.Select[int]) -> int:
    return await opened.read(lambda link: link.execute(wanted).scalar_one())


async def end_all(server: PostgresServer, name: str) -> None:
    """All sessions of that database."""
    await server.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"  # noqa: S608 - a name of our own
    )


@pytest.fixture
async def small_plan(postgres_server: PostgresServer) -> AsyncIterator[str]:
    """The address of a migrated database whose user may have two connections."""
    name = await postgres_server.new_database()
    await postgres_server.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 2")
    await postgres_server.execute(f"ALTER DATABASE {name} OWNER TO {name}")
    url = postgres_server.url(name).replace("postgres@", f"{name}@")
    await migrate(url)
    yield url
    await postgres_server.drop_database(name)
    await postgres_server.execute(f"DROP ROLE {name}")


@pytest.mark.parametrize("size", [1, 2])
async def test_a_small_pool_locks_nobody_out(postgres_url: str, size: int) -> None:
    store = await SqlStore.open(postgres_url, pool_size=size)
    async with asyncio.timeout(30):
        await asyncio.gather(
            *(store.commit(commit(f"k{n}", 0, said())) for n in range(20)),
            *(store.keep_file(b"%d" % n) for n in range(20)),
            *(store.load(f"k{n}") for n in range(20)),
        )
    assert len(await store.streams()) == 20
    await store.close()


async def test_an_operator_sees_whose_connections_they_are_and_how_many(postgres_url: str) -> None:
    of_ours = sa.text("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stillhere'")
    of_here = sa.text(f"{of_ours} AND datname = current_database()")
    async with database(postgres_url, pool_size=3) as opened:
        work = sa.select(sa.literal(1)).where(sa.func.pg_sleep(0.05).cast(sa.Text) == "")
        await asyncio.gather(
            *(opened.read(lambda link: link.execute(work).close()) for _ in range(12))
        )
        assert await opened.read(lambda link: link.execute(of_here).scalar_one()) == 3


async def test_a_server_without_a_place_is_no_error_where_one_of_ours_comes_free(
    small_plan: str,
) -> None:
    async with database(small_plan, pool_size=5) as opened:
        asked = (value(opened, ONE) for _ in range(30))
        assert await asyncio.gather(*asked) == [1] * 30


async def test_a_server_without_a_place_is_said_clearly_and_waited_out(small_plan: str) -> None:
    patience = Patience(place=0.5)
    async with database(small_plan, pool_size=2) as first:
        release = asyncio.Event()

        async def hold() -> None:
            async with first._engine.connect() as link:  # pyright: ignore[reportPrivateUsage]
                await link.execute(ONE)
                await release.wait()

        holding = [asyncio.create_task(hold()) for _ in range(2)]
        await asyncio.sleep(0.5)
        with pytest.raises(StorageError, match="DATABASE_POOL"):
            async with database(small_plan, patience=patience):
                pass
        release.set()
        await asyncio.gather(*holding)
    async with database(small_plan, patience=patience) as second:
        assert await value(second, ONE) == 1


async def test_connections_that_the_server_ended_are_replaced_without_a_word(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    async with database(postgres_url) as opened:
        await asyncio.gather(*(value(opened, ONE) for _ in range(5)))
        name = postgres_url.rpartition("/")[2]
        await end_all(postgres_server, name)
        assert await asyncio.gather(*(value(opened, ONE) for _ in range(10))) == [1] * 10


async def test_a_network_that_swallows_everything_holds_up_nobody_for_long(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    async with wire(postgres_server.port) as between:
        url = postgres_url.replace(f":{postgres_server.port}/", f":{between.port}/")
        through = f"{url}?sslmode=disable&connect_timeout=1"
        async with database(through, patience=Patience(answer=1.0)) as opened:
            await asyncio.gather(*(value(opened, ONE) for _ in range(5)))
            between.swallow()
            began = monotonic()
            with pytest.raises(StorageError):
                await value(opened, ONE)
            assert monotonic() - began < 15
            between.carry()
            assert await asyncio.gather(*(value(opened, ONE) for _ in range(5))) == [1] * 5


async def test_a_server_that_only_reads_by_now_is_left_for_the_one_that_writes(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    """After a change of the primary the old connections lead to what only follows it."""
    name = postgres_url.rpartition("/")[2]
    setting = f'ALTER DATABASE "{name}" SET default_transaction_read_only'
    await postgres_server.execute(f"{setting} = on")
    store = await SqlStore.open(postgres_url)
    await postgres_server.execute(f"{setting} = off")
    with pytest.raises(StorageError, match="read-only"):
        await store.set_fact("a", "b")
    await store.set_fact("a", "c")
    assert await store.fact("a") == "c"
    await store.close()


async def test_a_login_that_is_refused_later_is_said_and_tried_again(
    small_plan: str, postgres_server: PostgresServer
) -> None:
    name = small_plan.rpartition("/")[2]
    store = await SqlStore.open(small_plan)
    await postgres_server.execute(f"ALTER ROLE {name} NOLOGIN")
    await end_all(postgres_server, name)
    with pytest.raises(StorageError, match="not permitted to log in"):
        await store.set_fact("a", "b")
    with pytest.raises(ConfigurationError, match="not permitted to log in"):
        await SqlStore.open(small_plan)
    await postgres_server.execute(f"ALTER ROLE {name} LOGIN")
    await store.set_fact("a", "b")
    assert await store.fact("a") == "b"
    await store.close()


async def test_an_error_is_not_its_own_cause() -> None:
    with pytest.raises(StorageError) as caught:
        await SqlStore.open("postgres://127.0.0.1:1/bot?sslmode=disable")
    error: BaseException | None = caught.value
    seen: list[BaseException] = []
    while error is not None:
        assert error not in seen
        seen.append(error)
        error = error.__cause__


@asynccontextmanager
async def refusing(code: str, text: str) -> AsyncGenerator[str]:
    """The address of a server that has only this to say."""
    told = f"SFATAL\0C{code}\0M{text}\0\0".encode()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(b"E" + (len(told) + 4).to_bytes(4) + told)
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1")
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"postgres://ada:hush@127.0.0.1:{port}/bot?sslmode=disable"


@pytest.mark.parametrize(
    "text",
    ["the database system is starting up", "the database system is in recovery mode"],
)
async def test_a_server_that_is_not_up_yet_may_be_by_and_by(text: str) -> None:
    async with refusing("57P03", text) as url:
        with pytest.raises(StorageError, match=text):
            await SqlStore.open(url)


@pytest.mark.parametrize("code", ["28P01", "08P01"])
async def test_a_wrong_password_is_the_operators_to_mend(code: str) -> None:
    """Poolers say it with a number of their own."""
    async with refusing(code, 'password authentication failed for user "ada"') as url:
        with pytest.raises(ConfigurationError, match="authentication failed") as caught:
            await SqlStore.open(url)
    assert "hush" not in str(caught.value)


async def test_a_host_that_has_no_address_yet_may_have_one_later() -> None:
    with pytest.raises(StorageError):
        await SqlStore.open("postgres://nowhere.invalid/bot")
