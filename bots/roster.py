"""Which processes serve: each writes down who started it, and that it is still there; none of them
depends on it."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from importlib import metadata

import msgspec
import structlog

from bots.supervisor import Starter
from core.errors import StorageError
from core.ports import Clock, Store

FACT = "process "
LAST_SUPERVISED = "last supervised start "
"""And the role: who it was that started a process of that role, and would have started it again."""
SIGN_SECONDS = 60.0
SILENT = timedelta(seconds=3 * SIGN_SECONDS)
"""Whoever has said nothing for so long is gone."""
KEPT = timedelta(days=2)
"""A line of one that is gone."""

log = structlog.get_logger(__name__)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One life of one process. ``stopped`` is None unless it ended as it should."""

    host: str
    pid: int
    role: str
    version: str
    revision: str
    by: str
    supervised: bool
    started: datetime
    seen: datetime
    stopped: datetime | None = None

    def is_alive(self, now: datetime) -> bool:
        return self.stopped is None and now - self.seen < SILENT

    @property
    def last(self) -> datetime:
        return self.stopped or self.seen


def version() -> str:
    try:
        return metadata.version("stillhere")
    except metadata.PackageNotFoundError:
        return "unknown"


def new_line(started_by: Starter, pid: int, role: str, revision: str, now: datetime) -> Line:
    return Line(
        host=socket.gethostname(),
        pid=pid,
        role=role,
        version=version(),
        revision=revision,
        by=started_by.name,
        supervised=started_by.supervised,
        started=now,
        seen=now,
    )


@asynccontextmanager
async def listed(store: Store, clock: Clock, line: Line) -> AsyncGenerator[None]:
    """Never fails: a database that does not answer is for others to say."""
    name = f"{FACT}{line.host} {line.pid} {line.started:%Y%m%dT%H%M%S.%f}"
    log.info("process", by=line.by, supervised=line.supervised, role=line.role, pid=line.pid)
    await _begin(store, name, line, clock.now())
    signs = asyncio.create_task(_keep_on(store, clock, name, line))
    try:
        yield
    finally:
        signs.cancel()
        await asyncio.gather(signs, return_exceptions=True)
        now = clock.now()
        await _write(store, name, msgspec.structs.replace(line, seen=now, stopped=now))


async def read(store: Store) -> tuple[Line, ...]:
    """From the oldest start to the newest. Raises StorageError."""
    return tuple(sorted(_lines(await store.facts(FACT)).values(), key=lambda line: line.started))


async def last_supervised(store: Store, role: str) -> Line | None:
    """Raises StorageError."""
    return _decoded(await store.fact(LAST_SUPERVISED + role) or "")


async def _begin(store: Store, name: str, line: Line, now: datetime) -> None:
    await _write(store, name, line)
    with suppress(StorageError):
        known = _lines(await store.facts(FACT))
        old = tuple(other for other, one in known.items() if now - one.last > KEPT)
        await store.forget_facts(old)
    if line.supervised:
        await _write(store, LAST_SUPERVISED + line.role, line)


async def _keep_on(store: Store, clock: Clock, name: str, line: Line) -> None:
    while True:
        await clock.sleep(SIGN_SECONDS)
        await _write(store, name, msgspec.structs.replace(line, seen=clock.now()))


async def _write(store: Store, name: str, line: Line) -> None:
    with suppress(StorageError):
        await store.set_fact(name, msgspec.json.encode(line).decode())


def _lines(facts: Mapping[str, str]) -> dict[str, Line]:
    found = {name: _decoded(value) for name, value in facts.items()}
    return {name: line for name, line in found.items() if line is not None}


def _decoded(text: str) -> Line | None:
    """None for one that another version wrote otherwise."""
    try:
        return msgspec.json.decode(text, type=Line) if text else None
    except msgspec.MsgspecError:
        return None
