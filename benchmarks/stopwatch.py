"""Times of single awaits, and what is made of many; it decides nothing."""

from collections.abc import Awaitable
from statistics import fmean, median
from time import perf_counter
from typing import TypeVar

Result = TypeVar("Result")


class Stopwatch:
    """``times`` in seconds, by what was timed."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}

    async def time(self, name: str, work: Awaitable[Result]) -> Result:
        begin = perf_counter()
        result = await work
        self.times.setdefault(name, []).append(perf_counter() - begin)
        return result

    def typical(self) -> float:
        """The mean over what was timed, each by its median: outliers of a busy machine are out."""
        return fmean(median(times) for times in self.times.values())
