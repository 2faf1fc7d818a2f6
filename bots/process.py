"""One run of the process: signals, exit codes, the order of opening and closing."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from socket import socket
from typing import Any, TypeVar

import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bots.app import Service
from bots.clock import SystemClock
from bots.front import View, front_route
from bots.ground import Ground
from bots.roster import Line, listed, new_line
from bots.supervisor import starter, this_process
from bots.web import make_server
from core.errors import StorageError
from core.ports import Clock
from core.runtime.retrying import backoff
from storage.store import SqlStore

DATABASE_PATIENCE = 8
"""Tries of someone who sits before the terminal, about a minute in all."""

Result = TypeVar("Result")

log = structlog.get_logger(__name__)


class Wait:
    """How it stands with a database that is waited for."""

    def __init__(self) -> None:
        self._error = ""

    def failed(self, error: StorageError, attempt: int) -> None:
        self._error = f": {error}"
        log.warning("database not up yet; trying on", error=str(error), attempt=attempt)

    async def view(self) -> View:
        return View(state="waiting for the database")

    async def readiness(self) -> tuple[bool, dict[str, Any]]:
        return False, {"state": "starting", "database": f"not up yet{self._error}"}


async def when_up(
    opening: Callable[[], Awaitable[Result]],
    tries: int | None = DATABASE_PATIENCE,
    clock: Clock | None = None,
    wait: Wait | None = None,
) -> Result:
    """Waits for a database that is not up yet; for ever when ``tries`` is None. Raises
    ConfigurationError at once, StorageError after the last try."""
    clock, wait = clock or SystemClock(), wait or Wait()
    attempt = 1
    while True:
        try:
            return await opening()
        except StorageError as error:
            if attempt == tries:
                raise
            wait.failed(error, attempt)
        await clock.sleep(backoff(attempt, longest=15.0))
        attempt += 1


async def run_on(
    opening: Callable[[], Awaitable[SqlStore]],
    ground_of: Callable[[SqlStore], Ground],
    listener: socket,
) -> None:
    """The whole life of the service: waits for its database, however long that takes, since hosts
    start a process that ends again a few times only; health and signals are heard all the while.

    Raises ConfigurationError, StorageError.
    """
    stop = asyncio.Event()
    _listen_to_signals(stop)
    wait = Wait()
    async with _serving_health(listener, wait):
        store = await _unless(stop, when_up(opening, tries=None, wait=wait))
    if store is None:
        log.info("stopped before the database was up")
        return
    for note in store.notes:
        log.warning("of the database's address", note=note)
    ground = ground_of(store)
    try:
        async with listed(store, ground.clock, _line(ground, store)):
            await serve(ground, listener, stop)
    finally:
        await store.close()


def _line(ground: Ground, store: SqlStore) -> Line:
    role = ground.environment.get("ROLE") or "all"
    started_by = starter(ground.environment, this_process())
    revision = store.standing.needed if store.standing else ""
    return new_line(started_by, os.getpid(), role, revision, ground.clock.now())


@asynccontextmanager
async def _serving_health(listener: socket, wait: Wait) -> AsyncGenerator[None]:
    """A platform that delivers to us by HTTP is told to come again."""

    async def not_yet(request: Request) -> Response:
        return PlainTextResponse("Starting; try again soon.\n", status_code=503)

    everything = Route("/{path:path}", not_yet, methods=["GET", "POST", "PUT"])
    server = make_server(wait.readiness, [front_route(wait.view), everything])
    web = asyncio.create_task(server.serve([listener.dup()]))
    log.info("listening", port=listener.getsockname()[1])
    try:
        yield
    finally:
        server.should_exit = True
        await web


async def serve(
    ground: Ground, listener: socket | None, ended: asyncio.Event, *, finish: bool = False
) -> None:
    """Runs the service until a signal comes or ``ended`` is set. With ``finish`` the turns at work
    then may end first, however long they take.

    Raises ConfigurationError, StorageError.
    """
    service = Service(ground)
    stop = asyncio.Event()
    _listen_to_signals(stop)
    server = service.server()
    web = asyncio.create_task(server.serve([listener])) if listener else None
    try:
        await _unless(stop, service.start())
        await _first(ended.wait(), stop.wait())
        if finish and not stop.is_set():
            await _first(service.quiet(), stop.wait())
    finally:
        await service.stop()
        server.should_exit = True
        if web is not None:
            await web


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, Result]) -> Result | None:
    """None when the signal came first. Raises what the work raises."""
    task, signalled = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((task, signalled), return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()
        signalled.cancel()
        await asyncio.gather(task, signalled, return_exceptions=True)


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    """Returns when one of them does, and cancels the rest."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _listen_to_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def heard() -> None:
        if stop.is_set():
            os._exit(1)
        log.info("stopping; a second signal exits at once")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard)
