"""From the database into a bundle, a page at a time; never changes what it copies."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from core.domain.keys import key_of_aside
from core.domain.state import SCHEMA_VERSION, SessionState
from core.ports import RawHead, RawLogs, RawRow
from storage import bundle
from storage.bundle import SNAPSHOT, Kind, Meta, Replay
from storage.bundle_files import BundleFolder
from storage.codec import Codec, EventRow

PAGE = 1_000

T = TypeVar("T")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be copied, where to, when and why."""

    key: str
    target: Path
    at: datetime
    why: str
    compress: bool = False


async def export(logs: RawLogs, request: Request, codec: Codec | None = None) -> Meta | None:
    """None for a key that is unknown. A log that cannot be read goes out as it is, to its last
    row; a sound one to where it ended when the export began.

    Cancelled, it leaves nothing, or all of it. Raises StorageError, OSError; FileExistsError where
    the target is there already.
    """
    head = await logs.raw_head(request.key)
    if head is None:
        return None
    begun: list[_Work] = []
    try:
        work = await _to_its_end(lambda: _begin(begun, request, head, codec or Codec()))
        after: int | None = None
        while rows := await logs.raw_events(request.key, after, PAGE):
            after = rows[-1]["seq"]
            if not await _to_its_end(partial(work.add, rows)):
                break
        return await _to_its_end(work.finish)
    except BaseException:
        for work in begun:
            await _to_its_end(work.folder.drop)
        raise


async def _to_its_end(work: Callable[[], T]) -> T:
    """In a thread, which no cancellation reaches: who is cancelled hears of it when it has ended,
    so that nothing is still being written to what is then dropped."""
    thread = asyncio.get_running_loop().run_in_executor(None, work)
    cancelled: asyncio.CancelledError | None = None
    while not thread.done():
        try:
            await asyncio.wait({thread})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        thread.exception()
        raise cancelled
    return thread.result()


def _begin(begun: "list[_Work]", request: Request, head: RawHead, codec: Codec) -> "_Work":
    work = _Work(request, head, codec)
    begun.append(work)
    return work


class _Work:
    """Every method blocks."""

    def __init__(self, request: Request, head: RawHead, codec: Codec) -> None:
        self._request = request
        self._head = head
        self._key = key_of_aside(request.key)
        self._replay = Replay(SessionState(key=self._key), codec)
        self._kinds: Counter[bytes] = Counter()
        self._events = 0
        seq, tail = head.stream["seq"], head.tail
        self._end: int | None = seq if _are_numbers(seq, tail) and tail <= seq else None
        """Rows beyond it came after the export began; without one, every row belongs to it."""
        self.folder = BundleFolder(request.target, compress=request.compress)

    def add(self, rows: Sequence[RawRow]) -> bool:
        """Whether there may be more to add."""
        for row in rows:
            if self._end is not None and row["seq"] > self._end:
                return False
            self.folder.add_line(bundle.line(row))
            self._replay.add(EventRow(**row))
            kind = [bundle.carried(row["type"]), bundle.carried(row["version"])]
            self._kinds[msgspec.json.encode(kind)] += 1
            self._events += 1
        return True

    def finish(self) -> Meta:
        fault = self._fault()
        snapshot = (
            bundle.raw_snapshot(self._head.snapshot) if fault else bundle.parts(self._replay.state)
        )
        self.folder.end_lines()
        self.folder.add_file(SNAPSHOT, bundle.pretty(snapshot))
        meta = self._meta(fault)
        self.folder.publish(bundle.pretty(meta))
        return meta

    def _fault(self) -> str:
        seq, tail = self._head.stream["seq"], self._head.tail
        if self._end is None and not self._replay.fault:
            return f"{self._key}@{tail}: beyond the end of its log, {seq}"
        return self._replay.ended(seq)

    @property
    def _tail(self) -> int:
        return self._head.tail if _are_numbers(self._head.tail) else self._events

    def _meta(self, fault: str) -> Meta:
        stream = {name: bundle.carried(value) for name, value in self._head.stream.items()}
        request = self._request
        return Meta(
            service=_service(),
            schema_version=SCHEMA_VERSION,
            key=self._key,
            kept_as=request.key if request.key != self._key else "",
            session_id=str(stream["session_id"]),
            last_seq=self._end if self._end is not None else self._tail,
            events=self._events,
            kinds=tuple(
                Kind(*msgspec.json.decode(kind, type=tuple[Any, Any]), count)
                for kind, count in self._kinds.items()
            ),
            exported_at=request.at,
            why=request.why,
            fault=fault,
            files=self.folder.files,
            stream=stream,
        )


def _are_numbers(*values: object) -> bool:
    """SQLite keeps anything in a column of numbers."""
    return all(isinstance(value, int) for value in values)


def _service() -> str:
    try:
        return version("stillhere")
    except PackageNotFoundError:
        return "not installed"
