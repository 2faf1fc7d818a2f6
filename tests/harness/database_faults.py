"""Real faults of a database under a living service, each struck at one write; fakes no error."""

import asyncio
import os
import resource
import signal
import sqlite3
import subprocess
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from pathlib import Path

import msgspec
import psutil

from storage.url import SqliteUrl, parse_url
from tests.harness.lab import Lab
from tests.postgres import PostgresServer

HELD_SECONDS = 2.0
LOCKED_SECONDS = 6.5
"""Longer than a write waits for the lock, and then than a health check waits for a write."""
DISK_SIZE = "12m"
CHUNK = 4096


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """The database that a lab stands on. ``server`` is for it alone."""

    url: str
    server: PostgresServer | None = None

    @property
    def file(self) -> Path:
        url = parse_url(self.url)
        assert isinstance(url, SqliteUrl)
        return url.path


Strike = Callable[[Lab, Site], AbstractAsyncContextManager[None]]


class DatabaseFault(msgspec.Struct, frozen=True, kw_only=True):
    """``strike`` is entered while the service stands still before the write, and left after
    ``seconds``. ``noticed``: /readyz must speak of it meanwhile."""

    name: str
    strike: Strike
    seconds: float = HELD_SECONDS
    noticed: bool = True


@asynccontextmanager
async def disk_full(lab: Lab, site: Site) -> AsyncGenerator[None]:
    """All that is left is taken by a file, byte by byte in the end."""
    filler = site.file.with_name("filler")
    await asyncio.to_thread(_fill, filler)
    try:
        yield
    finally:
        filler.unlink()


def _fill(filler: Path) -> None:
    left = os.statvfs(filler.parent)
    descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT)
    try:
        os.posix_fallocate(descriptor, 0, left.f_bavail * left.f_frsize)
    finally:
        os.close(descriptor)


@asynccontextmanager
async def input_output_error(lab: Lab, site: Site) -> AsyncGenerator[None]:
    """No file of the process may grow past where the database's log ends: write(2) gives EFBIG,
    which SQLite reports as an I/O error."""
    wal = site.file.with_name(f"{site.file.name}-wal")
    before = resource.prlimit(lab.pid, resource.RLIMIT_FSIZE)
    end = wal.stat().st_size if wal.exists() else CHUNK
    resource.prlimit(lab.pid, resource.RLIMIT_FSIZE, (end, before[1]))
    try:
        yield
    finally:
        resource.prlimit(lab.pid, resource.RLIMIT_FSIZE, before)


@asynccontextmanager
async def locked(lab: Lab, site: Site) -> AsyncGenerator[None]:
    with closing(sqlite3.connect(site.file, isolation_level=None, timeout=10)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@asynccontextmanager
async def restarted(lab: Lab, site: Site) -> AsyncGenerator[None]:
    server = _server(site)
    await asyncio.to_thread(server.stop)
    try:
        yield
    finally:
        await asyncio.to_thread(server.start)


@asynccontextmanager
async def backends_killed(lab: Lab, site: Site) -> AsyncGenerator[None]:
    await _server(site).execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    yield


@asynccontextmanager
async def frozen(lab: Lab, site: Site) -> AsyncGenerator[None]:
    """The server hangs: it takes connections, since the kernel does, and answers nothing."""
    processes = await asyncio.to_thread(_processes, _server(site))
    _send(processes, signal.SIGSTOP)
    try:
        yield
    finally:
        _send(processes, signal.SIGCONT)


def _processes(server: PostgresServer) -> list[psutil.Process]:
    main = psutil.Process(server.pid)
    return [main, *main.children(recursive=True)]


def _send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        if process.is_running():
            process.send_signal(number)


def _server(site: Site) -> PostgresServer:
    assert site.server is not None
    return site.server


SQLITE_FAULTS = (
    DatabaseFault(name="disk full", strike=disk_full),
    DatabaseFault(name="I/O error", strike=input_output_error),
    DatabaseFault(name="locked", strike=locked, seconds=LOCKED_SECONDS),
)
POSTGRES_FAULTS = (
    DatabaseFault(name="PostgreSQL restarted", strike=restarted),
    DatabaseFault(name="connections killed", strike=backends_killed, noticed=False, seconds=0.1),
    DatabaseFault(name="PostgreSQL hangs", strike=frozen, seconds=5.0),
)


@contextmanager
def small_disk(folder: Path) -> Generator[str]:
    """A file system of its own at ``folder``; empty where it may be used, else why not."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        yield f"nothing can be mounted here: {done.stderr.strip()}"
        return
    try:
        yield ""
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
