"""One run of the process: signals, exit codes, the order of opening and closing."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from socket import socket
from typing import Any

import structlog

from bots.app import Ground, Service
from bots.clock import SystemClock
from core.errors import StorageError
from core.ports import Clock
from core.runtime.retrying import backoff
from storage.store import SqlStore

DATABASE_PATIENCE = 8
"""Tries, about a minute in all."""

log = structlog.get_logger(__name__)


async def open_store(
    url: str, tries: int = DATABASE_PATIENCE, clock: Clock | None = None
) -> SqlStore:
    """Waits for a database that is not up yet. Raises ConfigurationError, StorageError."""
    clock = clock or SystemClock()
    for attempt in range(1, tries):
        try:
            return await SqlStore.open(url)
        except StorageError as error:
            log.warning("database not up yet", error=str(error), attempt=attempt)
            await clock.sleep(backoff(attempt, longest=15.0))
    return await SqlStore.open(url)


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
    if listener is not None:
        log.info("listening", port=listener.getsockname()[1])
    try:
        await service.start()
        await _first(ended.wait(), stop.wait())
        if finish and not stop.is_set():
            await _first(service.quiet(), stop.wait())
    finally:
        await service.stop()
        server.should_exit = True
        if web is not None:
            await web


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
