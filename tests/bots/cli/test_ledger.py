"""``stillhere doctor --ledger`` from outside, also while another process has the database."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.store import SqlStore
from tests.command import run
from tests.contract.values import KEY, OTHER, at, commit, lease, letter, said, update


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    """Of a service that runs."""
    store = await SqlStore.open(f"sqlite:///{tmp_path}/data/stillhere.db")
    yield store
    await store.close()


async def told(folder: Path, *words: str) -> tuple[int, list[str]]:
    done = await asyncio.to_thread(run, folder, "doctor", *words)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


async def test_every_number_of_a_platform_is_on_its_line(tmp_path: Path, store: SqlStore) -> None:
    await store.commit(commit(KEY, 0, said(), owed=1, inbox=update(1)))
    answers = (letter("a", "1"), letter("b", "2"))
    settled = ((update(1), "answered"),)
    await store.commit(commit(KEY, 1, said(), settled=settled, outbox=answers))
    await store.commit(commit(KEY, 2, said(), owed=1, inbox=update(2)))
    (claimed,) = await store.claim(at(), lease(), limit=1)
    await store.give_up(claimed, "blocked", at())
    assert await told(tmp_path, "--ledger") == (
        0,
        [
            "telegram: 2 accepted; 1 answered + 0 failed + 0 discarded + 1 pending = 2; balanced",
            "telegram, not delivered: 1 failed, 1 pending",
        ],
    )


async def test_a_lost_message_is_told_with_where_to_look(tmp_path: Path, store: SqlStore) -> None:
    await store.commit(commit(OTHER, 0, said(), owed=1, inbox=update(1)))
    await store.commit(commit(KEY, 0, said(), owed=1, inbox=update(2)))
    await store.commit(commit(KEY, 1, said(), owed=0))
    code, lines = await told(tmp_path, "--ledger")
    assert code == 1
    assert lines == [
        "telegram: 2 accepted; 0 answered + 0 failed + 0 discarded + 1 pending = 1;"
        " UNEQUAL: 1 message is accounted for by nobody",
        "pending, though their sessions owe fewer (oldest first, at most 20):",
        f"  telegram  update 2  {KEY}  since 2026-05-05 14:30:22 UTC",
    ]
    code, lines = await told(tmp_path)
    assert code == 1
    assert "BAD  ledger: telegram UNEQUAL: 1 message is accounted for by nobody" in "\n".join(lines)


async def test_before_the_first_message_there_is_nothing_to_count(
    tmp_path: Path, store: SqlStore
) -> None:
    assert await told(tmp_path, "--ledger") == (0, ["no message was ever taken"])
    assert "ok   ledger: every message is accounted for, 0 pending" in (await told(tmp_path))[1]


async def test_without_a_database_it_says_so(tmp_path: Path) -> None:
    done = await asyncio.to_thread(run, tmp_path, "doctor", "--ledger")
    assert done.returncode == 78
    assert "there is no database at" in done.stderr
