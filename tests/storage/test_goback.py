"""A newer database takes older programs when it says so, and goes back to them without a loss."""

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from core.domain import events as ev
from core.errors import ConfigurationError
from storage.engine import Database
from storage.goback import RefusedWayError, Toll, go_back, other_connections, refuse_if_costly, toll
from storage.migrate import bring_up, migrate, open_database
from storage.revisions import OURS, Revisions, Terms
from storage.sqlite import SqliteDatabase
from storage.store import SqlStore
from tests.contract.values import KEY, commit, log, said
from tests.revisions import NEXT, future
from tests.storage.additions import schema

PLAIN = """
def upgrade() -> None:
    op.create_table("paints", sa.Column("name", sa.Text, primary_key=True))

def downgrade() -> None:
    op.drop_table("paints")
"""


async def _brought_up(url: str, revisions: Revisions) -> Database:
    await migrate(url)
    database = await open_database(url)
    await bring_up(database, revisions)
    return database


async def test_an_older_program_runs_on_a_newer_database_that_says_it_may(
    empty_url: str, tmp_path: Path
) -> None:
    await (await _brought_up(empty_url, future(tmp_path / "f"))).close()
    for read_only in (False, True):
        store = await SqlStore.open(empty_url, read_only=read_only)
        assert [NEXT in note and "may run on it" in note for note in store.notes] == [True]
        await store.close()


@pytest.mark.parametrize("terms", [Terms(oldest=NEXT), None])
async def test_not_on_one_that_asks_for_a_newer_program(
    empty_url: str, tmp_path: Path, terms: Terms | None
) -> None:
    await (await _brought_up(empty_url, future(tmp_path / "f", PLAIN, terms))).close()
    words = rf"revision {NEXT}, and asks for one that knows {NEXT}.*--to {OURS.newest}"
    for read_only in (False, True):
        with pytest.raises(ConfigurationError, match=words):
            await SqlStore.open(empty_url, read_only=read_only)


async def test_the_way_counts_and_not_its_last_step_alone(empty_url: str, tmp_path: Path) -> None:
    """A later revision that suits programs of today does not mend one that does not."""
    once = future(tmp_path / "f", PLAIN, Terms(oldest=NEXT))
    after = f"{len(OURS.names) + 2:04}"
    text = f'revision = "{after}"\ndown_revision = "{NEXT}"\ndef upgrade() -> None: pass\n'
    (once.folder / f"versions/{after}_after.py").write_text(text)
    terms = {**once.terms, after: Terms(oldest=OURS.newest)}
    twice = Revisions(once.folder, (*once.names, after), terms)
    await (await _brought_up(empty_url, twice)).close()
    with pytest.raises(ConfigurationError, match=f"revision {after}, and asks for .* {NEXT}"):
        await SqlStore.open(empty_url)


async def test_back_and_forth_loses_nothing(empty_url: str, tmp_path: Path) -> None:
    store = await SqlStore.open(empty_url)
    await store.commit(commit(KEY, 0, said()))
    await store.close()
    newer = future(tmp_path / "f")
    database = await open_database(empty_url)
    before = await database.read(schema)
    await bring_up(database, newer)
    assert await toll(database, OURS.newest, newer) == Toll((), ())
    kept = await go_back(database, OURS.newest, NEXT, newer)
    assert (kept is None) == (database.dialect == "postgresql")
    assert await database.read(schema) == before
    await database.close()
    store = await SqlStore.open(empty_url)
    assert store.notes == ()
    assert await store.events(KEY) == log(1, said())
    await store.close()


async def test_what_would_be_lost_is_counted_and_refused(empty_url: str, tmp_path: Path) -> None:
    newer = future(tmp_path / "f")
    database = await _brought_up(empty_url, newer)
    store = SqlStore(database)
    await store.commit(commit(KEY, 0, said()))
    await store.commit(commit(KEY, 1, said("more")))
    for statement in (
        "INSERT INTO paints (name) VALUES ('ochre'), ('umber')",
        "UPDATE events SET colour = 'blue' WHERE seq = 1",
        "UPDATE streams SET shade = 3",
    ):
        await database.write(lambda link, text=statement: link.execute(sa.text(text)))
    price = await toll(database, OURS.newest, newer)
    assert price.lost == (
        "column events.colour: 1 rows have something in it",
        "column streams.shade: 1 rows have something in it",
        "table paints: 2 rows",
    )
    with pytest.raises(RefusedWayError, match=r"nothing was changed.\n.*events.colour"):
        refuse_if_costly(price, OURS.newest)
    assert "paints" in await database.read(schema), "only looked at"
    spared = {**newer.terms, NEXT: Terms(oldest=OURS.newest, expendable=frozenset(EXPENDABLE))}
    price = await toll(database, OURS.newest, Revisions(newer.folder, newer.names, spared))
    assert price == Toll((), ())
    await store.close()


EXPENDABLE = ("paints", "events.colour", "streams.shade")


async def test_what_an_older_program_cannot_read_is_said(empty_url: str) -> None:
    store = await SqlStore.open(empty_url)
    await store.commit(commit(KEY, 0, said(), ev.Pinned(text="a"), ev.Pinned(text="b")))
    await store.close()
    database = await open_database(empty_url)
    price = await toll(database, "0004")
    assert price.unread == ("Pinned: 2 events in 1 conversations",)
    with pytest.raises(RefusedWayError, match=r"cannot read Pinned: 2 events"):
        refuse_if_costly(price, "0004")
    assert (await toll(database, "0005")).unread == ()
    await database.close()


async def test_every_revision_can_be_taken_back(empty_url: str) -> None:
    await migrate(empty_url)
    database = await open_database(empty_url)
    newest = await database.read(schema)
    for found, target in zip(OURS.names[:0:-1], OURS.names[-2::-1], strict=True):
        assert (await toll(database, target)).lost == ()
        await go_back(database, target, found)
    await bring_up(database)
    assert await database.read(schema) == newest
    await database.close()


async def test_another_that_was_faster_is_noticed(empty_url: str) -> None:
    await migrate(empty_url)
    database = await open_database(empty_url)
    await go_back(database, "0005", OURS.newest)
    with pytest.raises(RefusedWayError, match="another process has changed the revision"):
        await go_back(database, "0004", OURS.newest)
    await database.close()


@pytest.mark.postgres
async def test_others_that_have_it_open_are_counted(postgres_url: str) -> None:
    database, other = await open_database(postgres_url), await open_database(postgres_url)
    await other.read(schema)
    assert await other_connections(database) == 1
    await other.close()
    for _ in range(100):
        if await other_connections(database) == 0:
            break
    assert await other_connections(database) == 0
    await database.close()


async def test_a_backup_that_lacks_rows_is_none(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqlStore.open(sqlite_url)
    await store.commit(commit(KEY, 0, said()))
    await store.close()

    def lossy(source: sqlite3.Connection, copy: sqlite3.Connection) -> None:
        source.backup(copy)
        copy.execute("DELETE FROM events")
        copy.commit()

    monkeypatch.setattr("storage.sqlite._copy", lossy)
    database = await open_database(sqlite_url)
    assert isinstance(database, SqliteDatabase)
    with pytest.raises(Exception, match="does not have every row"):
        await database.backup("copy")
    assert list(Path(sqlite_url.removeprefix("sqlite:///")).parent.glob("*.copy*")) == []
    await database.close()
