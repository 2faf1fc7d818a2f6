"""The next process on a SQLite file goes on at once: it has the file alone."""

from pathlib import Path

from storage.store import SqlStore
from tests.contract.values import KEY, at, commit, lease, letter, said


async def test_a_new_process_waits_for_no_lease_of_the_dead(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'stillhere.db'}"
    first = await SqlStore.open(url)
    await first.commit(
        commit(KEY, 0, said(), outbox=(letter(f"{KEY}@1"),), lease=lease(), open_turn=True)
    )
    assert await first.claim(at(), lease())
    await first.close()
    second = await SqlStore.open(url)
    assert await second.abandoned(at()) == (KEY,)
    assert [row.message.id for row in await second.unsettled(at())] == [f"{KEY}@1"]
    await second.close()
