"""A database is made, upgraded after a backup, or left alone when it is newer."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from core.domain.ledger import Ledger
from core.errors import ConfigurationError
from core.ports import InboxId
from storage.migrate import OURS, Revisions, bring_up, migrate, open_database
from storage.store import SqlStore
from storage.tables import metadata
from tests.contract.values import KEY, OTHER, commit, log, said

NEXT = f"{len(OURS.names) + 1:04}"
SECOND = f'''"""The next one."""
import sqlalchemy as sa
from alembic import op
revision = "{NEXT}"
down_revision = "{OURS.names[-1]}"
def upgrade() -> None:
    op.add_column("streams", sa.Column("colour", sa.Text))
'''


@pytest.fixture
def newer(tmp_path: Path) -> Revisions:
    """The revisions of a version to come."""
    folder = tmp_path / "migrations"
    shutil.copytree(OURS.folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / f"versions/{NEXT}_next.py").write_text(SECOND)
    return Revisions(folder, (*OURS.names, NEXT))


async def _upgrade(url: str, revisions: Revisions) -> Path | None:
    database = await open_database(url)
    try:
        return await bring_up(database, revisions)
    finally:
        await database.close()


async def test_a_fresh_database_is_made_and_then_left_alone(empty_url: str) -> None:
    assert await migrate(empty_url) is None
    assert await migrate(empty_url) is None
    store = await SqlStore.open(empty_url)
    await store.commit(commit(KEY, 0, said()))
    await store.close()


async def test_the_revisions_make_the_tables_that_the_program_uses(empty_url: str) -> None:
    await migrate(empty_url)
    database = await open_database(empty_url)
    assert await database.read(_differences) == []
    await database.close()


def _differences(connection: sa.Connection) -> list[object]:
    return list(compare_metadata(MigrationContext.configure(connection), metadata))


async def test_on_sqlite_they_are_the_same_to_the_letter(sqlite_url: str) -> None:
    await migrate(sqlite_url)
    database = await open_database(sqlite_url)
    made = await database.read(_schema)
    await database.close()
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        metadata.create_all(connection)
        assert made == _schema(connection)
    engine.dispose()


def _schema(connection: sa.Connection) -> dict[str, str]:
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'alembic%'"
    return {name: " ".join(sql.split()) for name, sql in connection.exec_driver_sql(query)}


def test_the_program_knows_its_revisions() -> None:
    config = Config()
    config.set_main_option("script_location", str(OURS.folder))
    walk = ScriptDirectory.from_config(config).walk_revisions()
    assert OURS.names == tuple(script.revision for script in walk)[::-1]


async def test_an_older_database_is_upgraded_and_keeps_its_sessions(
    database_url: str, newer: Revisions
) -> None:
    store = await SqlStore.open(database_url)
    await store.commit(commit(KEY, 0, said()))
    await store.close()
    await _upgrade(database_url, newer)
    assert await _upgrade(database_url, newer) is None
    database = await open_database(database_url)
    columns = await database.read(lambda link: sa.inspect(link).get_columns("streams"))
    assert "colour" in {column["name"] for column in columns}
    assert await SqlStore(database).events(KEY) == log(1, said())
    await database.close()


@pytest.fixture
def first(tmp_path: Path) -> Revisions:
    """What the first version knew."""
    folder = tmp_path / "first"
    shutil.copytree(OURS.folder, folder, ignore=shutil.ignore_patterns("__pycache__", "000[2-9]*"))
    return Revisions(folder, ("0001",))


OLD = (
    *(("telegram", KEY, outcome) for outcome in ("answered", "answered", "failed")),
    *(("telegram", key, "pending") for key in (KEY, KEY, OTHER)),
    ("slack", "agent:main:slack:dm:t.7", "discarded"),
)


def _fill(connection: sa.Connection) -> None:
    stream = sa.text(
        "INSERT INTO streams (key, seq, open_turn) VALUES (:key, 0, :open)"
        " ON CONFLICT (key) DO NOTHING"
    )
    row = sa.text(
        "INSERT INTO inbox (platform, account, update_id, key, outcome)"
        " VALUES (:platform, 'bot', :name, :key, :outcome)"
    )
    for number, (platform, key, outcome) in enumerate(OLD):
        connection.execute(stream, {"key": key, "open": False})
        values = {"platform": platform, "name": str(number), "key": key, "outcome": outcome}
        connection.execute(row, values)


async def test_messages_of_an_older_version_are_counted(empty_url: str, first: Revisions) -> None:
    await _upgrade(empty_url, first)
    database = await open_database(empty_url)
    await database.write(_fill)
    await database.close()
    store = await SqlStore.open(empty_url)
    assert await store.ledger() == {
        "slack": Ledger(accepted=1, discarded=1),
        "telegram": Ledger(accepted=6, answered=2, failed=1, pending=3),
    }
    settled = ((InboxId("telegram", "bot", "3"), "answered"),)
    await store.commit(commit(KEY, 0, said(), owed=1, settled=settled))
    ledger = (await store.ledger())["telegram"]
    assert ledger == Ledger(accepted=6, answered=3, failed=1, pending=2)
    assert await store.unowed() == ()
    await store.close()


def _shape(connection: sa.Connection) -> dict[str, set[str]]:
    look = sa.inspect(connection)
    return {
        table: {column["name"] for column in look.get_columns(table)}
        for table in look.get_table_names()
    }


def _take_back(connection: sa.Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(OURS.folder))
    config.attributes["connection"] = connection
    command.downgrade(config, "0001")


async def test_the_counts_can_be_taken_back_and_made_anew(empty_url: str, first: Revisions) -> None:
    await _upgrade(empty_url, first)
    database = await open_database(empty_url)
    before = await database.read(_shape)
    await bring_up(database)
    after = await database.read(_shape)
    await database.write(_take_back)
    assert await database.read(_shape) == before
    assert after.keys() - before.keys() == {
        *("ledger", "files", "leases"),
        *("spending", "spending_sums", "spending_marks"),
    }
    await database.write(_fill)
    await bring_up(database)
    assert (await SqlStore(database).ledger())["telegram"].accepted == 6
    await database.close()


async def test_a_file_is_copied_before_its_upgrade(sqlite_url: str, newer: Revisions) -> None:
    store = await SqlStore.open(sqlite_url)
    await store.commit(commit(KEY, 0, said()))
    await store.close()
    backup = await _upgrade(sqlite_url, newer)
    assert backup is not None
    assert backup.stat().st_mode & 0o777 == 0o600
    old = await SqlStore.open(str(backup))
    assert await old.events(KEY) == log(1, said())
    await old.close()


async def test_a_backup_never_overwrites_another(sqlite_url: str) -> None:
    store = await SqlStore.open(sqlite_url)
    await store.close()
    database = await open_database(sqlite_url)
    copies = [await database.backup("copy") for _ in range(3)]
    assert len(set(copies)) == 3
    await database.close()


async def test_an_upgrade_that_fails_leaves_the_database_as_it_was(
    database_url: str, newer: Revisions
) -> None:
    store = await SqlStore.open(database_url)
    await store.commit(commit(KEY, 0, said()))
    await store.close()
    broken = newer.folder / f"versions/{NEXT}_next.py"
    broken.write_text(f"{SECOND}    op.drop_column('streams', 'nonsense')\n")
    with pytest.raises(Exception, match="nonsense"):
        await _upgrade(database_url, newer)
    store = await SqlStore.open(database_url)
    assert await store.events(KEY) == log(1, said())
    await store.close()


async def test_a_newer_database_is_refused(database_url: str, newer: Revisions) -> None:
    await migrate(database_url)
    await _upgrade(database_url, newer)
    with pytest.raises(ConfigurationError, match=rf"{NEXT}.*newer version"):
        await SqlStore.open(database_url)
    with pytest.raises(ConfigurationError, match=rf"{NEXT}.*newer version"):
        await SqlStore.open(database_url, read_only=True)


async def test_who_only_looks_does_not_upgrade(empty_url: str) -> None:
    database = await open_database(empty_url)
    await database.close()
    with pytest.raises(ConfigurationError, match="stillhere migrate"):
        await SqlStore.open(empty_url, read_only=True)


@pytest.mark.postgres
async def test_several_processes_may_start_at_once(empty_postgres_url: str) -> None:
    stores = await asyncio.gather(*(SqlStore.open(empty_postgres_url) for _ in range(4)))
    for number, store in enumerate(stores):
        await store.commit(commit(KEY, number, said()))
        await store.close()


START = """
import asyncio, sys
from storage.store import SqlStore
async def main():
    await (await SqlStore.open(sys.argv[1])).close()
asyncio.run(main())
assert "alembic" not in sys.modules, "loaded for nothing"
"""


async def test_a_start_with_nothing_to_do_does_not_load_alembic(sqlite_url: str) -> None:
    await migrate(sqlite_url)
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", START, sqlite_url, stderr=subprocess.PIPE
    )
    _, errors = await started.communicate()
    assert (started.returncode, errors) == (0, b"")
