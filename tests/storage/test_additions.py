"""Every revision only adds, so that programs of the one before work on while a deploy goes on."""

from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from storage.codec import Codec
from storage.migrate import alembic, open_database
from storage.revisions import OURS
from tests.revisions import NEXT, future
from tests.storage.additions import Schema, schema, taken_away


async def _steps(url: str, folder: Path, names: tuple[str, ...]) -> list[Schema]:
    """The tables after each of the revisions, one after the other."""
    upgrade = alembic("upgrade")

    def step(connection: sa.Connection, name: str) -> Schema:
        upgrade(connection, folder, name)
        return schema(connection)

    database = await open_database(url)
    try:
        return [await database.write(partial(step, name=name)) for name in names]
    finally:
        await database.close()


async def test_a_revision_takes_nothing_away(empty_url: str) -> None:
    seen = await _steps(empty_url, OURS.folder, OURS.names)
    assert all(seen)
    for name, before, after in zip(OURS.names[1:], seen, seen[1:], strict=False):
        assert (name, taken_away(before, after)) == (name, [])


TAKEN = {
    "op.drop_table('artifacts')": "table artifacts is gone",
    "op.rename_table('facts', 'truths')": "table facts is gone",
    "op.drop_column('outbox', 'doubts')": "table outbox: column doubts is gone",
    "op.alter_column('timers', 'data', new_column_name='body')": (
        "table timers: column data is gone"
    ),
    "op.add_column('facts', sa.Column('at', sa.Integer, nullable=False))": (
        "table facts: column at is required and has no default"
    ),
    "op.alter_column('events', 'session_id', nullable=False)": (
        "table events: column session_id may be empty no longer"
    ),
    "op.alter_column('timers', 'data', type_=sa.String(9))": (
        "table timers: the type of column data was TEXT and is VARCHAR(9)"
    ),
    "op.alter_column('streams', 'owed', server_default=None)": (
        "table streams: the default of column owed was"
    ),
    "op.create_index('one_due', 'timers', ['due'], unique=True)": (
        "table timers: ('due',) is unique now"
    ),
    "op.drop_index('access_owner', 'access')": "is unique no longer",
    "op.create_check_constraint('sane', 'timers', 'due > 0')": (
        "table timers: there is a new condition"
    ),
}


@pytest.mark.postgres
@pytest.mark.parametrize("change", TAKEN)
async def test_one_that_does_is_found(empty_postgres_url: str, tmp_path: Path, change: str) -> None:
    planted = future(tmp_path / "planted", f"def upgrade() -> None:\n    {change}\n")
    before, after = await _steps(empty_postgres_url, planted.folder, (OURS.newest, NEXT))
    assert [TAKEN[change] in one for one in taken_away(before, after)][:1] == [True]


async def test_one_that_adds_is_fine(empty_url: str, tmp_path: Path) -> None:
    before, after = await _steps(empty_url, future(tmp_path / "f").folder, (OURS.newest, NEXT))
    assert taken_away(before, after) == []
    assert taken_away(after, before) != []


def test_every_revision_states_its_terms() -> None:
    assert OURS.terms.keys() == set(OURS.names)
    assert {one.oldest for one in OURS.terms.values()} <= set(OURS.names)
    assert all(OURS.terms[name].oldest <= name for name in OURS.names)


def test_every_kind_of_event_came_with_a_revision() -> None:
    """A program that goes back to an earlier revision cannot read the kinds that came later: a new
    one, or a new version of one, is named by a new revision in storage/revisions.py."""
    stated: dict[str, int] = {}
    for name in OURS.names:
        assert stated.items() & OURS.terms[name].kinds.items() == set()
        stated |= OURS.terms[name].kinds
    assert stated == Codec().versions
