"""One run of the process: signals, exit codes, the order of opening and closing."""

import asyncio
import os
import signal
from socket import socket

import structlog

from bots.app import Ground, Service
from bots.clock import SystemClock
from core.errors import StorageError
from core.runtime.retrying import backoff
from storage.store import SqlStore

DATABASE_PATIENCE = 8
"""Tries, about a minute in all."""

log = structlog.get_logger(__name__)


async def open_store(url: str) -> SqlStore:
    """Waits for a database that is not up yet. Raises ConfigurationError, StorageError."""
    clock = SystemClock()
    for attempt in range(1, DATABASE_PATIENCE):
        try:
            return await SqlStore.open(url)
        except StorageError as error:
            log.warning("database not up yet", error=str(error), attempt=attempt)
            await clock.sleep(backoff(attempt, longest=15.0))
    return await SqlStore.open(url)


async def serve(ground: Ground, listener: socket | None, ended: asyncio.Event) -> None:
    """Runs the service until a signal comes or ``ended`` is set.

    Raises ConfigurationError, StorageError.
    """
    service = Service(ground)
    stop = asyncio.Event()
    _listen_to_signals(stop)
    server = service.server()
    web = asyncio.create_task(server.serve([listener])) if listener else None
    waiters = [asyncio.create_task(event.wait()) for event in (ended, stop)]
    try:
        await service.start()
        await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()
        await asyncio.gather(*waiters, return_exceptions=True)
        await service.stop()
        server.should_exit = True
        if web is not None:
            await web


def _listen_to_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def heard() -> None:
        if stop.is_set():
            os._exit(1)
        log.info("stopping; a second signal exits at once")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard)
