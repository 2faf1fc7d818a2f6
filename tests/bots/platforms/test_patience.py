"""Whatever breaks, an adapter goes on; only a refused token ends it."""

import asyncio

import pytest

from bots.platforms.patience import Judgement, Patience, TokenRefusedError
from bots.platforms.signs import Signs, State
from core.errors import StorageError
from tests.bots.platforms.telegram.kit import QuickClock

WORDS: dict[State, str] = {
    "connecting": "connecting",
    "unreachable": "out of reach",
    "not stored": "cannot be stored",
    "refused": "refused",
}


def judge(error: Exception) -> Judgement:
    state: State = "refused" if isinstance(error, PermissionError) else "unreachable"
    return Judgement(state, type(error).__name__)


@pytest.fixture
def signs() -> Signs:
    return Signs("here", WORDS, 60.0, QuickClock())


@pytest.fixture
def patience(signs: Signs) -> Patience:
    return Patience(signs, QuickClock(), judge)


class Work:
    """Ends in each of these ways, then works for ever."""

    def __init__(self, *ends: Exception | None) -> None:
        self.ends = list(ends)
        self.lasts = asyncio.Event()

    async def __call__(self) -> None:
        if not self.ends:
            self.lasts.set()
            await asyncio.Event().wait()
        end = self.ends.pop(0)
        if end is not None:
            raise end


@pytest.mark.parametrize("end", [KeyError("result"), StorageError("away"), TimeoutError(), None])
async def test_work_that_ends_begins_again(
    patience: Patience, signs: Signs, end: Exception | None
) -> None:
    work = Work(end, end)
    task = asyncio.create_task(patience.keep_at(work))
    async with asyncio.timeout(10):
        await work.lasts.wait()
    assert not signs.health().ok
    task.cancel()


@pytest.mark.parametrize("end", [TokenRefusedError(), PermissionError()])
async def test_a_refused_token_ends_it(patience: Patience, end: Exception) -> None:
    work = Work(end)
    async with asyncio.timeout(10):
        await patience.keep_at(work)
    assert not work.lasts.is_set()
