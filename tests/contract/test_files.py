"""What every store promises of files."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from core.errors import StorageError
from core.ports import Store
from storage.store import SqlStore

DATA = bytes(range(256)) * 2_000


async def test_a_file_is_found_by_its_hash(store: Store) -> None:
    sha = await store.keep_file(DATA)

    assert sha == hashlib.sha256(DATA).hexdigest()
    assert await store.file(sha) == DATA
    assert await store.file("0" * 64) is None


async def test_the_same_bytes_are_one_file_however_often_they_come(store: Store) -> None:
    found = await asyncio.gather(*(store.keep_file(DATA) for _ in range(5)))

    assert len(set(found)) == 1
    assert await store.keep_file(DATA + b"!") not in found
    assert await store.file(found[0]) == DATA


async def test_an_empty_file_is_one(store: Store) -> None:
    assert await store.file(await store.keep_file(b"")) == b""


async def test_a_closed_store_takes_none(store: Store) -> None:
    sha = await store.keep_file(DATA)
    await store.close()
    with pytest.raises(StorageError):
        await store.keep_file(DATA)
    with pytest.raises(StorageError):
        await store.file(sha)


async def test_a_file_outlives_the_process(database_url: str) -> None:
    store = await SqlStore.open(database_url)
    sha = await store.keep_file(DATA)
    await store.close()

    again = await SqlStore.open(database_url)
    assert await again.file(sha) == DATA
    await again.close()


def kept(folder: Path) -> list[Path]:
    return [path for path in (folder / "data/files").rglob("*") if path.is_file()]


async def test_on_sqlite_it_lies_beside_the_database_for_its_owner_alone(
    sqlite_url: str, tmp_path: Path
) -> None:
    store = await SqlStore.open(sqlite_url)
    sha = await store.keep_file(DATA)
    await store.keep_file(DATA)

    assert kept(tmp_path) == [tmp_path / "data/files" / sha[:2] / sha]
    assert kept(tmp_path)[0].stat().st_mode & 0o777 == 0o600
    await store.close()


async def test_on_sqlite_a_damaged_file_is_no_file_and_is_mended_when_it_comes_again(
    sqlite_url: str, tmp_path: Path
) -> None:
    store = await SqlStore.open(sqlite_url)
    sha = await store.keep_file(DATA)
    kept(tmp_path)[0].write_bytes(DATA[:100])

    assert await store.file(sha) is None
    await store.keep_file(DATA)
    assert await store.file(sha) == DATA
    await store.close()


async def test_on_sqlite_a_disk_that_takes_nothing_is_told(sqlite_url: str, tmp_path: Path) -> None:
    store = await SqlStore.open(sqlite_url)
    (tmp_path / "data/files").write_text("in the way")

    with pytest.raises(StorageError):
        await store.keep_file(DATA)
    await store.close()
