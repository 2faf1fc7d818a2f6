"""A process that stops itself in the middle of a transaction, for tests of who waits for it:
``python -m tests.storage.standing <url> <where> <name>``."""

import asyncio
import os
import signal
import sys
from typing import Any

import sqlalchemy as sa
from sqlalchemy.util import await_only

from core.errors import StorageError
from storage.postgres import open_postgres
from storage.tables import facts
from storage.url import PostgresUrl, parse_url
from storage.way import Patience

MANY = "SELECT repeat('x', 1000000) FROM generate_series(1, 300)"


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def between(connection: sa.Connection) -> None:
    """The server waits for the next statement."""
    stop()


def sending(connection: sa.Connection) -> None:
    """The server waits for the rest of a statement."""
    driver: Any = connection.connection.driver_connection
    await_only(driver.prepare("SELECT 1"))
    stop()


def receiving(connection: sa.Connection) -> None:
    """The server waits for its answer to be read."""
    asyncio.get_running_loop().call_later(0.05, stop)
    connection.execute(sa.text(MANY)).all()


def working(connection: sa.Connection) -> None:
    """The server waits for nobody: it works."""
    asyncio.get_running_loop().call_later(0.05, stop)
    connection.execute(sa.text("SELECT pg_sleep(4)"))


PLACES = {one.__name__: one for one in (between, sending, receiving, working)}


async def main(address: str, where: str, seconds: float) -> None:
    """Says what became of its transaction when it is woken."""
    url = parse_url(address)
    assert isinstance(url, PostgresUrl)
    database = await open_postgres(url, patience=Patience(statement=seconds))
    held = sa.update(facts).where(facts.c.name == "held").values(value="by who stood still")

    def work(connection: sa.Connection) -> None:
        connection.execute(held)
        PLACES[where](connection)

    try:
        await database.write(work)
        print("stored")  # noqa: T201
    except StorageError:
        print("failed")  # noqa: T201
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
