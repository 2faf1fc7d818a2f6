"""Memory and open files of the lives of a service; it only reads them and keeps the numbers."""

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Self

import msgspec
import psutil

from tests.harness.lab import Lab
from tests.standins.openai import COMPLETIONS

MIB = 2**20
LOOK_SECONDS = 0.1
SAME_AGE = 1.0
"""Seconds after a life first called the model: by then all that is loaded lazily is there."""


class Sample(msgspec.Struct, frozen=True):
    """``at`` is in seconds of ``time.monotonic``, ``rss`` in MiB."""

    at: float
    life: int
    rss: float
    files: int


class Change(msgspec.Struct, frozen=True):
    """Medians of the first and the last quarter."""

    rss: tuple[float, float]
    files: tuple[float, float]
    count: int

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Self:
        if not samples:
            return cls((0.0, 0.0), (0.0, 0.0), 0)
        quarter = max(1, len(samples) // 4)
        ends = (samples[:quarter], samples[-quarter:])
        first, last = ([s.rss for s in end] for end in ends)
        less, more = ([s.files for s in end] for end in ends)
        return cls(
            (statistics.median(first), statistics.median(last)),
            (statistics.median(less), statistics.median(more)),
            len(samples),
        )


def sample(lab: Lab) -> Sample | None:
    """None while nothing is up."""
    try:
        process = psutil.Process(lab.pid)
        with process.oneshot():
            rss, files = process.memory_info().rss / MIB, process.num_fds()
    except (psutil.Error, ValueError):
        return None
    return Sample(time.monotonic(), lab.lives, rss, files) if lab.pid else None


async def warm(lab: Lab, ended: Callable[[], bool]) -> None:
    """Until this life has reached the age that all are measured at; not longer than it has."""
    life = lab.lives
    while not (ended() or COMPLETIONS in lab.calls[life]):  # noqa: ASYNC110
        await asyncio.sleep(LOOK_SECONDS)
    await asyncio.sleep(SAME_AGE)


async def watched(lab: Lab, ended: Callable[[], bool], every: float) -> list[Sample]:
    """Of one life that nobody kills, once it is warm."""
    await warm(lab, ended)
    found: list[Sample] = []
    while not ended():
        found += [one for one in (sample(lab),) if one is not None]
        await asyncio.sleep(every)
    return found


def slopes(samples: Sequence[Sample]) -> tuple[float, float]:
    """MiB and files a minute."""
    return (
        _slope(samples, [one.rss for one in samples]),
        _slope(samples, [float(one.files) for one in samples]),
    )


def _slope(samples: Sequence[Sample], values: Sequence[float]) -> float:
    minutes = [one.at / 60 for one in samples]
    return statistics.linear_regression(minutes, values).slope if len(values) > 1 else 0.0
