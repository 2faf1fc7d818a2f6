"""Work that blocks holds up nobody."""

import threading

import pytest

from core.files.threads import in_thread


async def test_its_result_and_its_error_come_back() -> None:
    assert await in_thread(threading.get_ident, 30) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 / 0, 30)


async def test_one_that_hangs_is_left_behind() -> None:
    gate = threading.Event()

    with pytest.raises(TimeoutError):
        await in_thread(gate.wait, 0.01)
    gate.set()
