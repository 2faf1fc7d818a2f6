"""Group commit: what gathers while a transaction is under way goes into the next one; nobody
waits for company, and nobody is answered before their own data is on disk."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from core.errors import StillhereError, StorageError, UnstorableError
from core.ports import UNWATCHED, Span, Telemetry
from storage.engine import Database, RefusedError

Item = TypeVar("Item")
Result = TypeVar("Result")
Bulk = Callable[[sa.Connection, Sequence[Item]], Sequence[Result | StillhereError]]
"""Does many items of one kind; an error in the place of a result is for that caller alone."""

GROUP_SIZE = 512
"""At most so many in a transaction, so that the first of them is not kept waiting by the last."""


class _Job(msgspec.Struct, frozen=True, eq=False):
    bulk: Bulk[Any, Any]
    item: Any
    answer: asyncio.Future[Any]
    alone: bool


class Writer:
    def __init__(
        self,
        database: Database,
        last: Bulk[Any, Any] | None = None,
        telemetry: Telemetry = UNWATCHED,
    ) -> None:
        """``last`` is done after all else in a transaction: it locks what others wait for."""
        self._database = database
        self._last = last
        self._telemetry = telemetry
        self._waiting: list[_Job] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def do(self, bulk: Bulk[Item, Result], item: Item, *, alone: bool = False) -> Result:
        """``alone``: in a transaction of its own. Raises the item's own error, or StorageError."""
        if self._closed:
            raise StorageError("the store is closed")
        job = _Job(bulk, item, asyncio.get_running_loop().create_future(), alone)
        self._waiting.append(job)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="store-writer")
        return await job.answer

    async def close(self) -> None:
        """What was asked before is still written."""
        self._closed = True
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        try:
            while self._waiting:
                size = _size(self._waiting)
                group = self._waiting[:size]
                del self._waiting[:size]
                await self._write([job for job in group if not job.answer.done()])
        finally:
            self._task = None
            left, self._waiting = self._waiting, []
            for job in left:
                _answer(job, StorageError("the writer was stopped"))

    async def _write(self, group: list[_Job]) -> None:
        """A group that the database refuses is tried again one by one, so that what is wrong with
        one cannot fail the others. A commit that fails is not: it may be there."""
        if not group:
            return
        try:
            results = await self._transaction(group)
        except (RefusedError, UnstorableError):
            results = [await self._alone(job) for job in group]
        except StorageError as error:
            results = [StorageError(str(error)) for _ in group]
        except Exception:  # noqa: BLE001 - the top of a task; each caller gets its own error
            results = [await self._alone(job) for job in group]
        for job, result in zip(group, results, strict=True):
            _answer(job, result)

    async def _alone(self, job: _Job) -> object:
        try:
            return (await self._transaction([job]))[0]
        except Exception as error:  # noqa: BLE001 - the top of a task
            return error

    async def _transaction(self, group: list[_Job]) -> list[Any]:
        with watched(self._telemetry, "write"):
            return await self._database.write(lambda link: _do_all(link, group, self._last))


@contextmanager
def watched(telemetry: Telemetry, name: str) -> Generator[None]:
    """A transaction; one that failed, for whatever was in it, is an error of the database."""
    try:
        with telemetry.span(Span(kind="transaction", name=name)) as span:
            yield
            span.outcome = "done"
    except StorageError:
        telemetry.count("database_error")
        raise


def _size(waiting: Sequence[_Job]) -> int:
    """How many of them go into the next transaction: at least one."""
    together = takewhile(lambda job: not job.alone, waiting[:GROUP_SIZE])
    return max(1, sum(1 for _ in together))


def _do_all(
    connection: sa.Connection, group: Sequence[_Job], last: Bulk[Any, Any] | None
) -> list[Any]:
    kinds: dict[Any, list[int]] = {}
    for place, job in enumerate(group):
        kinds.setdefault(job.bulk, []).append(place)
    results: list[Any] = [None] * len(group)
    for bulk, places in sorted(kinds.items(), key=lambda kind: kind[0] == last):
        answers = bulk(connection, [group[place].item for place in places])
        for place, answer in zip(places, answers, strict=True):
            results[place] = answer
    return results


def _answer(job: _Job, result: object) -> None:
    if job.answer.done():
        return
    if isinstance(result, Exception):
        job.answer.set_exception(result)
    else:
        job.answer.set_result(result)
