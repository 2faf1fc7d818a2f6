"""One process has the file; a failing disk fails the caller and nothing else."""

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from core.errors import ConfigurationError, StorageError
from storage.engine import Database
from storage.migrate import migrate, open_database
from storage.store import SqlStore
from tests.contract.values import KEY, OTHER, commit, log, said

HOLDER = """
import asyncio, sys
from storage.store import SqlStore
from tests.contract.values import KEY, commit, said
async def main():
    store = await SqlStore.open(sys.argv[1])
    await store.commit(commit(KEY, 0, said("before the kill")))
    print("ready", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_a_second_process_is_refused_until_the_first_is_gone(sqlite_url: str) -> None:
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, sqlite_url, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"ready\n"
    with pytest.raises(ConfigurationError, match=rf"another process \(pid {holder.pid}\)"):
        await SqlStore.open(sqlite_url)
    beside = await SqlStore.open(sqlite_url, read_only=True)
    assert await beside.events(KEY) == log(1, said("before the kill"))
    with pytest.raises(StorageError, match="reading only"):
        await beside.set_fact("a", "b")
    await beside.close()
    holder.send_signal(signal.SIGKILL)
    await holder.wait()
    store = await SqlStore.open(sqlite_url)
    assert await store.events(KEY) == log(1, said("before the kill"))
    await store.commit(commit(KEY, 1, said()))
    await store.close()


async def test_a_second_store_in_one_process_is_refused_by_any_name(
    sqlite_url: str, tmp_path: Path
) -> None:
    store = await SqlStore.open(sqlite_url)
    (tmp_path / "link.db").symlink_to(tmp_path / "data/store.db")
    with pytest.raises(ConfigurationError):
        await SqlStore.open(str(tmp_path / "link.db"))
    await store.close()
    again = await SqlStore.open(str(tmp_path / "link.db"))
    await again.close()


async def test_the_files_are_for_their_owner_alone(sqlite_url: str, tmp_path: Path) -> None:
    store = await SqlStore.open(sqlite_url)
    await store.commit(commit(KEY, 0, said()))
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "data").iterdir()}
    assert {"store.db", "store.db-wal", "store.db.lock"} <= modes.keys()
    assert set(modes.values()) == {0o600}
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    await store.close()


async def test_every_commit_is_flushed_and_the_log_is_written_ahead(sqlite_url: str) -> None:
    database = await open_database(sqlite_url)

    def settings(connection: sa.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]

    assert await database.write(settings) == ["wal", 2, 1]
    await database.close()


async def test_a_full_disk_fails_the_commit_and_nothing_else(sqlite_url: str) -> None:
    await migrate(sqlite_url)
    database = await open_database(sqlite_url)
    store = SqlStore(database)
    await store.commit(commit(KEY, 0, said("before")))
    await _limit(database, 1)
    results = await asyncio.gather(
        store.commit(commit(KEY, 1, said("x" * 100_000))),
        store.commit(commit(OTHER, 0, said("y" * 100_000))),
        return_exceptions=True,
    )
    assert [type(result).__mro__[1] for result in results] == [StorageError] * 2
    assert await store.events(KEY) == log(1, said("before"))
    await _limit(database, 1_000_000)
    await store.commit(commit(KEY, 1, said("x" * 100_000)))
    assert len(await store.events(KEY)) == 2
    await store.close()


async def _limit(database: Database, pages: int) -> None:
    """As a disk would."""
    pragma = f"PRAGMA max_page_count = {pages}"
    await database.write(lambda connection: connection.exec_driver_sql(pragma).scalar())


async def test_a_missing_file_is_not_made_by_one_who_only_looks(
    sqlite_url: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="no database"):
        await SqlStore.open(sqlite_url, read_only=True)
    assert not (tmp_path / "data").exists()


async def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=re.escape(str(tmp_path / "file"))):
        await SqlStore.open(str(tmp_path / "file/store.db"))


async def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Ada, this is no database.")
    with pytest.raises(ConfigurationError, match="not a SQLite database"):
        await SqlStore.open(f"sqlite:///{letter}")
    assert letter.read_text() == "Dear Ada, this is no database."
