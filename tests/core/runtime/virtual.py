"""Time that passes only when everything waits; no test sleeps, and one that hangs says so."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from structlog.testing import capture_logs

START = datetime(2026, 5, 5, 14, 30, tzinfo=UTC)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class _Skipping(selectors.DefaultSelector):
    """Instead of waiting it moves the time on."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everything waits for something that will never happen")
        self.passed += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.passed


class VirtualClock:
    """``core.ports.Clock`` on the time of the running loop."""

    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def in_virtual_time(
    test: Callable[Parameters, Coroutine[Any, Any, None]],
) -> Callable[Parameters, None]:
    """The test fails, too, when a turn broke off by an error that nobody foresaw."""

    @wraps(test)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        with capture_logs() as lines:
            run_virtually(test(*args, **kwargs))
        broken = [line for line in lines if line["event"] == "turn broke off"]
        assert not broken, broken[0]["exc_info"]

    return run


def run_virtually(work: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
