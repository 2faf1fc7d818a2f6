"""Ends sessions whose process stands still and holds what others wait for; never one that works.

A process that is stopped between two statements is ended by the server itself
(``idle_in_transaction_session_timeout``). One that is stopped while the server waits to read from
it or to write to it, in the middle of a statement, is ended by no time limit of the server.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

import sqlalchemy as sa
import structlog

from core.errors import StorageError
from storage.engine import storage_errors, transact
from storage.way import Way

PAUSE = 1.0
"""Seconds between two looks."""
_LONG = "< clock_timestamp() - make_interval(secs => :seconds)"
_OURS = "usename = current_user AND datname = current_database() AND application_name = :name"
_END = sa.text(
    f"""
    WITH holding AS MATERIALIZED (
        SELECT DISTINCT unnest(pg_blocking_pids(pid)) AS pid FROM pg_stat_activity
        WHERE {_OURS} AND wait_event_type = 'Lock' AND query_start {_LONG}
    ), standing AS MATERIALIZED (
        SELECT pid FROM pg_stat_activity JOIN holding USING (pid)
        WHERE {_OURS} AND wait_event_type = 'Client' AND state_change {_LONG}
    )
    SELECT pid FROM standing WHERE pg_terminate_backend(pid)
    """  # noqa: S608 - two texts of this module
)
"""The server has waited for its client all the time that the others waited for the lock. Sessions
of our own user may be ended by us; https://www.postgresql.org/docs/current/functions-admin.html"""

log = structlog.get_logger(__name__)


class Unblocker:
    def __init__(self, way: Way) -> None:
        self._way = way
        self._seconds = way.patience.blocked
        self._engine = way.single()
        self._late: set[object] = set()
        """What takes so long that it may be blocked."""
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self) -> Generator[None]:
        """Around a transaction."""
        one = object()
        timer = asyncio.get_running_loop().call_later(self._seconds, self._is_late, one)
        try:
            yield
        finally:
            timer.cancel()
            self._late.discard(one)

    def _is_late(self, one: object) -> None:
        self._late.add(one)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._unblock())

    async def _unblock(self) -> None:
        while self._late:
            try:
                await self._look()
            except StorageError as error:
                log.info("not looked who blocks us", error=str(error))
            except Exception:
                log.exception("not looked who blocks us")
            await asyncio.sleep(PAUSE)

    async def _look(self) -> None:
        """With a connection of its own: those of the pool may all be waiting."""
        given = {"name": self._way.name, "seconds": self._seconds}

        def end(connection: sa.Connection) -> list[int]:
            return list(connection.execute(_END, given).scalars())

        with storage_errors():
            async with self._engine.connect() as connection:
                ended = await connection.run_sync(transact, self._way.prepared(end))
        if ended:
            log.warning("ended sessions of a process that stands still", backends=ended)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._engine.dispose()
