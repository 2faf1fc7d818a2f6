import asyncio

from core.runtime.gate import Gate
from tests.core.runtime.virtual import in_virtual_time


class Steps:
    """Writes down who is inside."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.inside: set[str] = set()
        self.met: list[tuple[str, ...]] = []

    def begin(self, name: str, seconds: float, alone: bool = False) -> "asyncio.Task[None]":
        return asyncio.create_task(self._step(name, seconds, alone))

    async def _step(self, name: str, seconds: float, alone: bool) -> None:
        async with self.gate.step(alone=alone):
            self.inside.add(name)
            self.met.append(tuple(sorted(self.inside)))
            try:
                await asyncio.sleep(seconds)
            finally:
                self.inside.remove(name)


@in_virtual_time
async def test_ordinary_steps_run_side_by_side() -> None:
    steps = Steps(Gate())

    await asyncio.gather(steps.begin("a", 1), steps.begin("b", 1))

    assert ("a", "b") in steps.met


@in_virtual_time
async def test_a_suspect_runs_alone() -> None:
    steps = Steps(Gate())
    first = steps.begin("a", 5)
    await asyncio.sleep(1)

    suspect = steps.begin("suspect", 5, alone=True)
    await asyncio.sleep(5)
    late = steps.begin("b", 1)
    other = steps.begin("other suspect", 1, alone=True)
    await asyncio.gather(first, suspect, late, other)

    assert [met for met in steps.met if "suspect" in met] == [("suspect",)]
    assert [met for met in steps.met if "other suspect" in met] == [("other suspect",)]


@in_virtual_time
async def test_a_suspect_does_not_wait_for_a_step_without_end() -> None:
    steps = Steps(Gate(patience=10))
    endless = steps.begin("endless", 1e6)
    await asyncio.sleep(1)

    await steps.begin("suspect", 1, alone=True)

    assert ("endless", "suspect") in steps.met
    endless.cancel()


@in_virtual_time
async def test_a_suspect_that_is_stopped_lets_the_others_in() -> None:
    steps = Steps(Gate())
    suspect = steps.begin("suspect", 1e6, alone=True)
    await asyncio.sleep(1)
    waiting = steps.begin("a", 1)
    await asyncio.sleep(1)

    suspect.cancel()
    await asyncio.wait_for(waiting, timeout=5)

    assert steps.met == [("suspect",), ("a",)]
