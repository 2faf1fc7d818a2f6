"""What the tests of the grades share: which there are, a disk that is watched, a log's events."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from core.domain.events import Recorded
from core.domain.policy import Durability
from core.ports import Commit
from tests.core.runtime.house import KEY, Ground

LATE: tuple[Durability, ...] = ("async", "exit")
GRADES: tuple[Durability, ...] = ("sync", *LATE)


class Disk:
    """Counts writes, and is asked around each of them; a whole process's ``disk.killer``."""

    def __init__(self) -> None:
        self.writes = 0

    def __call__(self, moment: str) -> bool:
        self.writes += moment == "before"
        return False


class Slow:
    """A store whose commits take their time; two at once for one key would be a mistake."""

    def __init__(self, store: Any, seconds: Callable[[], float]) -> None:
        self._store = store
        self._seconds = seconds
        self.under_way: Counter[str] = Counter()
        self.conflicts = 0
        self.commits: list[Commit] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, commit: Commit) -> int:
        self.under_way[commit.key] += 1
        assert self.under_way[commit.key] == 1, "two writes of one key at once"
        try:
            await asyncio.sleep(self._seconds())
            stream = await self._store.commit(commit)
            self.commits.append(commit)
            return stream
        finally:
            self.under_way[commit.key] -= 1


async def log_of(ground: Ground) -> tuple[Recorded, ...]:
    return await ground.store.events(KEY)


def events(log: tuple[Recorded, ...]) -> list[Any]:
    return [one.event for one in log]
