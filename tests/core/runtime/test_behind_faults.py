"""A late write meets deaths, failing disks and other processes; nothing of it is ever seen."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from structlog.testing import capture_logs

from core.domain.events import ModelReplied, ToolFinished, TurnInterrupted
from core.domain.messages import ModelReply, ModelRequest, RequestSize
from core.domain.policy import Durability, Policy
from core.ports import OnText, ToolContext, ToolOutput
from tests.core.runtime.grades import GRADES, LATE, Disk, Slow, events, log_of
from tests.core.runtime.house import KEY, LEASE, FakeTool, Ground, Process, asks, passes
from tests.core.runtime.test_sessions import all_is_answered_once, ran_twice, two_processes
from tests.core.runtime.virtual import in_virtual_time, run_virtually

TOOLS = ("look", "look", "pay", "look")
REDONE = {"sync": 1, "async": 2, "exit": 3}
"""Model calls that one kill may cost: none, one on its way, or all since what could not wait."""


def next_of_the_errand(request: ModelRequest) -> str | ModelReply:
    """As many tools as it sees no results of, one after the other, and then it says so."""
    done = str(request).count("ToolMessage(")
    return asks(TOOLS[done]) if done < len(TOOLS) else "all done"


async def killed_after(ticks: int, grade: Durability) -> tuple[Ground, int]:
    """The number of events that were on disk when the process died."""
    ground = Ground(*[next_of_the_errand] * 20, policy=Policy(durability=grade))
    first = await ground.starts()
    hearing = asyncio.create_task(first.hears("go"))
    for _ in range(ticks):
        await asyncio.sleep(0)
    first.dies()
    await asyncio.wait({hearing})
    await passes(LEASE)
    stored = len(await log_of(ground))
    await ground.starts()
    await passes(LEASE)
    return ground, stored


@pytest.mark.parametrize("grade", GRADES)
def test_killed_at_any_moment_nothing_is_lost_and_only_looks_are_repeated(
    grade: Durability,
) -> None:
    seen: set[int] = set()
    for ticks in range(0, 130):
        with capture_logs():
            ground, stored = run_virtually(killed_after(ticks, grade))
        seen.add(stored)
        log = run_virtually(log_of(ground))
        steps = Counter((e.turn, e.step) for e in events(log) if isinstance(e, ModelReplied))
        outcomes = run_virtually(ground.outcomes())
        assert outcomes in ({"answered": 1}, {}), f"tick {ticks}: {outcomes}"
        assert bool(outcomes) == bool(log)
        assert set(steps.values()) <= {1}, f"tick {ticks}"
        assert len(steps) in (0, len(TOOLS) + 1), f"tick {ticks}"
        assert sum(ground.tools["pay"].started.values()) <= 1, f"tick {ticks}"
        asked = len(ground.script.requests)
        assert asked <= len(TOOLS) + 1 + REDONE[grade], f"tick {ticks}"
        assert set(ground.chat.texts) == ({"all done"} if log else set())
    assert len(seen) > 4, "there must be many different moments"


async def with_faults(faults: tuple[str, ...], grade: Durability) -> Ground:
    ground = Ground(*[next_of_the_errand] * 20, policy=Policy(durability=grade))
    process = await ground.starts()
    await process.hears("go")
    process.disk.faults.extend(faults)
    await passes(120)
    return ground


@pytest.mark.parametrize("grade", LATE)
def test_whatever_write_fails_and_however_nothing_is_lost_or_doubled(grade: Durability) -> None:
    for faults in product(("", "before", "after"), repeat=4):
        with capture_logs() as lines:
            ground = run_virtually(with_faults(faults, grade))
        log = run_virtually(log_of(ground))
        steps = Counter((e.turn, e.step) for e in events(log) if isinstance(e, ModelReplied))
        assert run_virtually(ground.outcomes()) == {"answered": 1}, faults
        assert [text for text in ground.chat.texts if "picking up" not in text] == ["all done"]
        assert set(steps.values()) == {1}, faults
        assert sum(ground.tools["pay"].started.values()) <= 1, faults
        assert len(ground.script.requests) == len(TOOLS) + 1, f"{faults}: memory still had it"
        assert not [line for line in lines if line["event"] == "turn broke off"], faults


@in_virtual_time
async def test_after_a_flight_that_failed_the_turn_waits_for_the_disk() -> None:
    ground = Ground(asks("look"), asks("look"), "seen", policy=Policy(durability="async"))
    process = await ground.starts()
    ground.script.hold()
    await process.hears("go")
    process.disk.faults.extend(["before"] * 5)
    ground.script.release()
    await passes(10)

    assert len(ground.script.requests) == 1, "its result cannot be stored yet"
    await passes(30)
    assert ground.chat.texts == ["seen"]
    assert sum(ground.tools["look"].started.values()) == 2
    assert len(ground.script.requests) == 3


@in_virtual_time
async def test_a_doubled_update_takes_nothing_away_from_what_is_behind() -> None:
    ground = Ground(asks("look"), "seen", policy=Policy(durability="exit"))
    ground.tools["look"].seconds = 5
    process = await ground.starts()
    update = await process.hears("go")
    await passes(1)
    await process.admission.accept(update)
    await passes(10)

    assert ground.chat.texts == ["seen"]
    assert len(ground.script.requests) == 2


@pytest.mark.parametrize("grade", LATE)
def test_two_processes_that_keep_their_leases_do_nothing_twice(grade: Durability) -> None:
    for seed in range(20):
        with capture_logs():
            ground, log = run_virtually(two_processes(seed, lease=6.0, renew=True, grade=grade))

        assert [ran_twice(ground, tool) for tool in ground.tools] == [[], [], []], f"seed {seed}"
        all_is_answered_once(ground, log, seed)


@pytest.mark.parametrize("grade", LATE)
def test_processes_that_lose_every_lease_do_nothing_unsafe_twice(grade: Durability) -> None:
    interrupted = 0
    for seed in range(40):
        with capture_logs():
            ground, log = run_virtually(two_processes(seed, lease=2.5, renew=False, grade=grade))

        assert ran_twice(ground, "pay") == [], f"seed {seed}"
        all_is_answered_once(ground, log, seed)
        interrupted += sum(isinstance(e, TurnInterrupted) for e in events(log))
    assert interrupted > 20, "the leases must really be lost"


@pytest.mark.parametrize("grade", LATE)
@in_virtual_time
async def test_a_message_taken_by_another_process_costs_no_work(grade: Durability) -> None:
    """It stands in the log before what is behind, which follows it with other numbers."""
    ground = Ground(asks("look"), "seen", "and that", policy=Policy(durability=grade))
    ground.tools["look"].seconds = 5
    first, second = await ground.starts(), await ground.starts()
    first.disk.killer = slowly = Disk()
    await first.hears("go")
    await second.hears("and that")
    await passes(20)

    assert ground.chat.texts == ["seen", "and that"]
    assert len(ground.script.requests) == 3
    assert sum(ground.tools["look"].started.values()) == 1
    assert slowly.writes
    assert not any(isinstance(e, TurnInterrupted) for e in events(await log_of(ground)))


class Prompter:
    """A model whose every call takes as long, and says what, as its list tells."""

    name = "prompter"

    def __init__(self, *lines: tuple[float, ModelReply]) -> None:
        self._lines = list(lines)

    async def measure(self, request: ModelRequest) -> RequestSize:
        return RequestSize()

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        seconds, reply = self._lines.pop(0)
        await passes(seconds)
        return reply


async def another_past() -> Ground:
    ground = Ground(policy=Policy(durability="exit"))
    ground.model = Prompter(
        (0, asks("look")),
        (100, ModelReply(text="nothing is owed")),  # the first process, on its own past
        (0, asks("pay")),  # the second, on what the log knows
        (1000, ModelReply(text="never")),
        (0, ModelReply(text="paid once")),
    )
    first = await ground.starts()
    await first.hears("pay if you must")
    await passes(1)
    first.forgets_to_renew()
    await passes(LEASE)
    second = await ground.starts()
    await passes(2 * LEASE)
    second.dies()
    assert sum(ground.tools["pay"].started.values()) == 1
    await passes(200)
    return ground


def test_an_answer_that_follows_from_another_past_is_void() -> None:
    """By its turn and step it would fit, and it knows nothing of what the log says was paid."""
    with capture_logs():
        ground = run_virtually(another_past())

    assert sum(ground.tools["pay"].started.values()) == 1
    assert ground.chat.texts[-1] == "paid once"
    assert "nothing is owed" not in ground.chat.texts
    assert run_virtually(ground.outcomes()) == {"answered": 1}


@in_virtual_time
async def test_who_works_on_what_was_never_stored_is_stopped() -> None:
    """By whoever finds out: here by a message that the first process takes."""
    ground = Ground(policy=Policy(durability="exit"))
    ground.model = Prompter(
        (0, asks("look")),
        (10_000, ModelReply(text="never")),
        (0, asks("look")),
        (0, ModelReply(text="hello")),
        (0, ModelReply(text="still here")),
    )
    first = await ground.starts()
    await first.hears("go")
    await passes(1)
    first.forgets_to_renew()
    await passes(LEASE)
    await ground.starts()
    await passes(5)
    assert first.agent.working() == (KEY,)

    await first.hears("are you there?")
    await passes(5)

    assert first.agent.working() == ()
    assert ground.chat.texts[-1] == "still here"
    assert await ground.outcomes() == {"answered": 2}


async def another_took_over(*lines: tuple[float, ModelReply]) -> tuple[Ground, Process]:
    """The first process is in a look and does not know it; the second calls the model."""
    ground = Ground(policy=Policy(durability="exit"))
    ground.model = Prompter((0, asks("look")), *lines)
    ground.tools["look"].seconds = 100
    first = await ground.starts()
    await first.hears("go")
    await passes(1)
    first.forgets_to_renew()
    await passes(LEASE)
    await ground.starts()
    return ground, first


@in_virtual_time
async def test_what_is_behind_does_not_get_into_a_turn_that_another_runs() -> None:
    """It would fit, as nothing was replied yet; but nobody would bring the look to its end."""
    hello, more = ModelReply(text="hello"), ModelReply(text="more")
    ground, first = await another_took_over((20, hello), (0, more))
    await first.hears("are you there?")
    await passes(30)

    assert ground.chat.texts == ["hello", "more"]
    assert sum(isinstance(e, TurnInterrupted) for e in events(await log_of(ground))) == 1


@in_virtual_time
async def test_no_snapshot_is_made_of_what_was_never_stored() -> None:
    ground, first = await another_took_over((1000, ModelReply(text="never")))
    log = await log_of(ground)
    assert (await first.state()).seq == len(log), "both have two events more, and not the same"

    await first.sessions.save_snapshots()

    assert (await ground.store.load(KEY)).snapshot is None


@in_virtual_time
async def test_without_the_lease_nothing_lags() -> None:
    ground = Ground(asks("look"), asks("look"), "seen", policy=Policy(durability="exit"))
    ground.tools["look"].seconds = 5
    process = await ground.starts()
    await process.hears("go")
    await passes(4)
    process.sessions.held.clear()
    await passes(1.5)

    assert isinstance((await log_of(ground))[-1].event, ToolFinished)
    process.dies()


@in_virtual_time
async def test_a_flight_does_not_shorten_the_lease() -> None:
    ground = Ground(asks("look"), asks("look"), "seen", policy=Policy(durability="async"))
    memory, pauses = ground.store, iter([0.0, 12.0, 4.0, *[0.0] * 9])
    ground.tools["look"] = Slowing("look", "read_only")
    ground.store = Slow(memory, lambda: next(pauses))  # pyright: ignore[reportAttributeAccessIssue]
    first = await ground.starts()
    await first.hears("go")
    ground.store = memory
    await passes(3)
    await ground.starts()
    await passes(100)

    assert ground.chat.texts == ["seen"]
    assert not any(isinstance(e, TurnInterrupted) for e in events(await log_of(ground)))


class Slowing(FakeTool):
    """Each call takes longer than the one before."""

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self.seconds = self.seconds * 60 + 0.5
        return await super().run(arguments, context)
