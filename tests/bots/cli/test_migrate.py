"""``stillhere migrate --to`` as an operator has it: what is said, and what is refused."""

import asyncio
import re
from pathlib import Path

import pytest

from core.domain import events as ev
from storage.migrate import migrate, open_database
from storage.revisions import OURS
from storage.store import SqlStore
from tests.command import run
from tests.contract.values import KEY, commit, said

BEFORE = OURS.names[-2]


def _at(path: Path) -> str:
    return str(path / "data" / "stillhere.db")


def test_back_and_up_again_with_a_copy_before_each(tmp_path: Path) -> None:
    assert run(tmp_path, "migrate").returncode == 0
    back = run(tmp_path, "migrate", "--to", BEFORE)
    assert (back.returncode, back.stderr) == (0, "")
    assert back.stdout.startswith(f"From data revision {OURS.newest} back to {BEFORE}.\n")
    assert f"this one would bring it to {OURS.newest} again" in back.stdout
    doctor = run(tmp_path, "doctor")
    assert f"is at revision {BEFORE}, this version needs {OURS.newest}" in doctor.stdout
    again = run(tmp_path, "migrate", "--to", BEFORE)
    assert again.stdout == f"The data is at revision {BEFORE} already.\n"
    up = run(tmp_path, "migrate")
    assert (up.returncode, up.stderr) == (0, "")
    assert up.stdout.startswith(f"The data is at revision {BEFORE}; this version takes it to")
    copies = [re.search(r"is kept in (\S+)", one.stdout) for one in (back, up)]
    assert [Path(copy[1]).is_file() for copy in copies if copy] == [True, True]


def test_what_has_a_price_is_refused_until_it_is_known(tmp_path: Path) -> None:
    asyncio.run(_pin(_at(tmp_path)))
    refused = run(tmp_path, "migrate", "--to", "0004")
    assert refused.returncode == 1
    assert "The older version cannot read Pinned: 1 events in 1 conversations" in refused.stderr
    assert "--lose-data" in refused.stderr
    assert run(tmp_path, "migrate").stdout.startswith("The database is up to date"), "unchanged"
    done = run(tmp_path, "migrate", "--to", "0004", "--lose-data")
    assert (done.returncode, done.stderr) == (0, "")
    assert "has no room in 0004: Pinned: 1 events" in done.stdout


async def _pin(url: str) -> None:
    store = await SqlStore.open(url)
    await store.commit(commit(KEY, 0, said(), ev.Pinned(text="a")))
    await store.close()


def test_a_revision_that_there_is_not(tmp_path: Path) -> None:
    done = run(tmp_path, "migrate", "--to", "9999")
    assert done.returncode == 78
    assert f"there are 0001, {OURS.names[1]}" in done.stderr


async def test_not_while_another_process_has_the_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    store = await SqlStore.open(_at(tmp_path))
    back = await asyncio.to_thread(run, tmp_path, "migrate", "--to", BEFORE)
    assert (back.returncode, "in use by another process" in back.stderr) == (78, True)
    up = await asyncio.to_thread(run, tmp_path, "migrate")
    assert (up.returncode, "up to date; the process that has it open" in up.stdout) == (0, True)
    await store.close()


@pytest.mark.postgres
async def test_on_postgresql_a_backup_is_named_and_others_are_looked_for(
    tmp_path: Path, empty_postgres_url: str
) -> None:
    url = empty_postgres_url.replace("postgres@", "postgres:hush@")
    await migrate(url)

    async def back(*flags: str) -> tuple[int, str]:
        words = ("migrate", "--to", BEFORE, *flags)
        done = await asyncio.to_thread(run, tmp_path, *words, DATABASE_URL=url)
        assert "hush" not in done.stdout + done.stderr
        return done.returncode, done.stdout + done.stderr

    code, text = await back()
    assert (code, "then say --yes. Nothing was changed" in text) == (1, True)
    assert re.search(r"pg_dump --format=custom --file=\S+ --host=127.0.0.1 --port=\d+", text)
    other = await open_database(url)
    await other.read(lambda link: None)
    code, text = await back("--yes")
    assert (code, "1 other connections have the database open" in text) == (1, True)
    code, text = await back("--yes", "--while-served")
    assert (code, f"The data is at revision {BEFORE} now" in text) == (0, True)
    await other.close()
