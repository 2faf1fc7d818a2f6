"""What the clock wakes, when the clock itself is set to another time."""

from datetime import datetime, timedelta
from typing import Any

from core.domain.events import TurnInterrupted
from core.domain.outputs import Timer
from core.domain.policy import Policy
from core.ports import Commit
from storage.memory import MemoryStore
from tests.core.domain.samples import HOME, reminder
from tests.core.runtime.house import KEY, LEASE, Ground, passes
from tests.core.runtime.virtual import VirtualClock, in_virtual_time


class Unsteady(VirtualClock):
    """It is set back by ``back``."""

    def __init__(self) -> None:
        self.back = timedelta()

    def now(self) -> datetime:
        return super().now() - self.back


class Correcting(MemoryStore):
    """While it finds a reminder due, the clock is put right by half a second."""

    clock: Unsteady

    async def due(self, *args: Any, **named: Any) -> tuple[Timer, ...]:
        found = await super().due(*args, **named)
        reminders = [timer for timer in found if timer.kind == "reminder"]
        self.clock.back += timedelta(seconds=0.6) * len(reminders[: not self.clock.back])
        return found


@in_virtual_time
async def test_a_reminder_rings_though_the_clock_is_put_right_just_then() -> None:
    ground = Ground("hello", "stretch now!")
    ground.store, ground.clock = Correcting(), Unsteady()
    ground.store.clock = ground.clock
    process = await ground.starts()
    await process.hears("hi")
    await passes(2)
    due = ground.clock.now() + timedelta(seconds=30)
    await process.sessions.change(KEY, lambda state, at: (reminder("r1", due),))
    await passes(60)
    assert ground.clock.back
    assert ground.chat.texts == ["hello", "stretch now!"]


class Hasty(MemoryStore):
    """It wakes a second too early."""

    async def due(self, now: datetime, *args: Any, **named: Any) -> tuple[Timer, ...]:
        return await super().due(now + timedelta(seconds=1), *args, **named)


@in_virtual_time
async def test_a_timer_that_comes_too_early_comes_again_in_time() -> None:
    ground = Ground("hello", "stretch now!")
    ground.store = Hasty()
    process = await ground.starts()
    await process.hears("hi")
    due = ground.clock.now() + timedelta(seconds=30)
    await process.sessions.change(KEY, lambda state, at: (reminder("r1", due),))
    await passes(60)
    assert ground.chat.texts == ["hello", "stretch now!"]


@in_virtual_time
async def test_the_service_answers_once_and_at_once_when_the_clock_is_set_back() -> None:
    ground = Ground(*["answer"] * 5)
    ground.clock = clock = Unsteady()
    process = await ground.starts()
    for _ in range(5):
        await process.hears("/help")
    await passes(2)
    process.limiter.block(HOME, 5)
    clock.back = timedelta(hours=2)
    await process.hears("and now?")
    await passes(10)
    assert ground.chat.texts.count("answer") == 1
    await passes(3 * 3600)
    assert ground.chat.texts.count("answer") == 1


class Jolting(MemoryStore):
    """The clock is set back while it stores an interruption."""

    clock: Unsteady

    async def commit(self, commit: Commit) -> int:
        number = await super().commit(commit)
        if any(isinstance(recorded.event, TurnInterrupted) for recorded in commit.log):
            self.clock.back = timedelta(hours=2)
        return number


@in_virtual_time
async def test_a_suspect_turn_waits_its_pause_and_no_longer_when_the_clock_is_set_back() -> None:
    ground = Ground("never said", "at last", policy=Policy(attempt_delays=(0.0, 30.0)))
    ground.store, ground.clock = Jolting(), Unsteady()
    ground.store.clock = ground.clock
    ground.script.hold()
    first = await ground.starts()
    await first.hears("hi")
    await passes(5)
    first.dies()
    ground.script.release()
    await passes(LEASE + 5)
    await ground.starts()
    await passes(25)
    assert ground.chat.texts == []
    await passes(10)
    assert ground.chat.texts[-1:] == ["at last"]
