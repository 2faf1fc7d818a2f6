"""What is looked up in a service's database beside the service; it writes nothing."""

from contextlib import suppress

from core.domain.events import Recorded
from core.errors import BrokenDataError, StorageError
from storage.store import SqlStore


class Reader:
    """Reads as `stillhere sessions` does."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store: SqlStore | None = None

    async def store(self) -> SqlStore:
        if self._store is None:
            self._store = await SqlStore.open(self._url, read_only=True)
        return self._store

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()

    async def nobody_waits(self) -> bool:
        """No turn is open, no message pending or under way; false when it cannot be read."""
        try:
            store = await self.store()
            if any(info.open_turn for info in await store.streams()):
                return False
            waits = sum(n for state, n in (await store.backlog()).items() if state != "failed")
            return not waits and not any(one.pending for one in (await store.ledger()).values())
        except StorageError:
            return False

    async def logs(self) -> dict[str, tuple[Recorded, ...]]:
        """Those that can be read."""
        store = await self.store()
        found: dict[str, tuple[Recorded, ...]] = {}
        for info in await store.streams():
            with suppress(BrokenDataError):
                found[info.key] = await store.events(info.key)
        return found
