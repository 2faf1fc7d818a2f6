"""What a bad disk does to a conversation while no service runs; it reads nothing."""

from storage.engine import Database
from storage.migrate import open_database
from tests.bots.damage import event, of, without_snapshot


async def spoil(url: str, key: str) -> None:
    """Its second event is of a type that nobody knows, and there is no snapshot that would do
    without it."""
    database: Database = await open_database(url)
    try:
        await database.write(of(key, without_snapshot(event(2, type="Nobody"))))
    finally:
        await database.close()
