"""The real time and real randomness; the only file that may ask for them."""

import asyncio
import secrets
import time
from datetime import UTC, datetime


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def short_id() -> str:
    """Finds a line in the log: 8 hex digits."""
    return secrets.token_hex(4)


def claim_code() -> str:
    """80 bits, so that nobody guesses it before the owner has sent it."""
    return secrets.token_hex(10)


def stopwatch() -> float:
    """Seconds since whenever; for how long something took."""
    return time.perf_counter()
