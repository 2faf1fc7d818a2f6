"""Runs works side by side; it leaves none of them behind."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def until_one_fails(*works: Coroutine[Any, Any, None]) -> None:
    """Raises what it failed with; the others are cancelled."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
