"""One writer at a time, whoever else is at work on the same database."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import msgspec
from msgspec.structs import replace
from structlog.testing import capture_logs

from core.domain import inputs as ask
from core.domain.events import ModelReplied, Recorded, ToolStarted, TurnInterrupted
from core.domain.messages import (
    ModelFailure,
    ModelReply,
    ModelRequest,
    RequestSize,
    ToolCall,
    Usage,
)
from core.domain.outputs import Timer
from core.domain.policy import BusyMode, Durability, Policy
from core.ports import OnText, ToolContext, ToolOutput
from tests.core.domain.samples import reminder
from tests.core.runtime.house import KEY, FakeTool, Ground, Process, asks, passes
from tests.core.runtime.virtual import in_virtual_time, run_virtually

SEEDS = 40
TASK = re.compile(r"task (\d+)")


class Worker:
    """A model that wants each tool once for each task, and takes its time."""

    name = "worker"

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    async def measure(self, request: ModelRequest) -> RequestSize:
        return RequestSize()

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        await passes(self._dice.uniform(0, 3))
        shown = str(request)
        tasks = list(dict.fromkeys(TASK.findall(shown)))
        wanted = [(task, tool) for task in tasks for tool in ("look", "book", "pay")]
        left = [(task, tool) for task, tool in wanted if arguments(task, tool) not in shown]
        if not left:
            return ModelReply(text=f"done with {tasks}")
        task, tool = left[0]
        return ModelReply(text="", calls=(ToolCall("c1", tool, arguments(task, tool)),))


def arguments(task: str, tool: str) -> str:
    return f'{{"{tool}": {task}}}'


class Moody(FakeTool):
    """A tool that never takes the same time twice."""

    def __init__(self, tool: FakeTool, dice: random.Random) -> None:
        super().__init__(tool.spec.name, tool.effect)
        self._dice = dice

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self.seconds = self._dice.uniform(0, 3)
        return await super().run(arguments, context)


class Slow:
    """A database that answers in its own time, and so shuffles who is first."""

    def __init__(self, store: Any, dice: random.Random) -> None:
        self._store = store
        self._dice = dice

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)

        async def call(*args: Any, **named: Any) -> Any:
            await asyncio.sleep(self._dice.uniform(0, 0.2))
            result = await method(*args, **named)
            await asyncio.sleep(self._dice.uniform(0, 0.2))
            return result

        return call


async def two_processes(
    seed: int, lease: float, renew: bool, grade: Durability = "sync"
) -> tuple[Ground, tuple[Recorded, ...]]:
    dice = random.Random(seed)
    ground = Ground()
    memory = ground.store
    ground.store = Slow(memory, dice)  # pyright: ignore[reportAttributeAccessIssue]
    ground.model = Worker(dice)
    ground.policy = Policy(
        turn_max_resumes=1000, turn_max_attempts=1000, attempt_delays=(0.0,), durability=grade
    )
    ground.tools |= {name: Moody(tool, dice) for name, tool in ground.tools.items()}
    pair = [await ground.starts(seconds=lease) for _ in range(2)]
    if not renew:
        for process in pair:
            process.forgets_to_renew()
    for number in range(4):
        await dice.choice(pair).hears(f"task {number}")
        await passes(dice.uniform(0, 8))
    ground.store = memory
    while "pending" in await ground.outcomes() or await memory.backlog():
        await passes(1)
    return ground, await memory.events(KEY)


def ran_twice(ground: Ground, tool: str) -> list[int]:
    return [n for name, n in ground.tools[tool].started.items() if n > 1 and name]


def test_two_processes_do_nothing_twice() -> None:
    for seed in range(SEEDS):
        with capture_logs():
            ground, log = run_virtually(two_processes(seed, lease=6.0, renew=True))

        starts = Counter(
            (e.turn, e.step, e.call_id) for e in events(log) if isinstance(e, ToolStarted)
        )
        assert set(starts.values()) == {1}, f"seed {seed}"
        assert [ran_twice(ground, tool) for tool in ground.tools] == [[], [], []], f"seed {seed}"
        all_is_answered_once(ground, log, seed)


def test_processes_that_lose_every_lease_still_do_nothing_unsafe_twice() -> None:
    interrupted = 0
    for seed in range(SEEDS):
        with capture_logs():
            ground, log = run_virtually(two_processes(seed, lease=2.0, renew=False))

        assert ran_twice(ground, "pay") == [], f"seed {seed}"
        all_is_answered_once(ground, log, seed)
        interrupted += sum(isinstance(e, TurnInterrupted) for e in events(log))
    assert interrupted > SEEDS, "the leases must really be lost"


def events(log: tuple[Recorded, ...]) -> list[Any]:
    return [one.event for one in log]


def all_is_answered_once(ground: Ground, log: tuple[Recorded, ...], seed: int) -> None:
    steps = Counter((e.turn, e.step) for e in events(log) if isinstance(e, ModelReplied))
    assert set(steps.values()) == {1}, f"seed {seed}"
    assert run_virtually(ground.outcomes()) == {"answered": 4}, f"seed {seed}"
    answers = [text for text in ground.chat.texts if text.startswith("done with")]
    assert "3" in answers[-1], f"seed {seed}"
    assert len(answers) == len(set(answers)), f"seed {seed}"


async def two_lives(*lines: Any) -> tuple[Ground, Process, Process]:
    """Both have talked with the person, so both remember the session."""
    ground = Ground("hello", "hello again", *lines)
    first, second = await ground.starts(), await ground.starts()
    await first.hears("hi")
    await passes(3)
    await second.hears("hi again")
    await passes(3)
    return ground, first, second


@in_virtual_time
async def test_a_process_that_is_behind_looks_again_before_it_writes() -> None:
    ground, first, second = await two_lives("three", "four")

    await first.hears("three")
    await passes(3)
    await second.hears("four")
    await passes(3)

    assert ground.chat.texts == ["hello", "hello again", "three", "four"]
    assert "three" in str(ground.script.requests[-1])


async def paying(mode: BusyMode, *lines: Any, seconds: float = 600.0) -> tuple[Ground, Process]:
    """A turn hangs in a tool of one process; the other one is returned."""
    ground = Ground(asks("pay"), *lines, policy=Policy(busy_mode=mode))
    ground.tools["pay"].seconds, ground.tools["pay"].timeout = seconds, 900.0
    first, second = await ground.starts(), await ground.starts()
    await first.hears("pay it")
    await passes(5)
    assert first.agent.working() == (KEY,)
    return ground, second


@in_virtual_time
async def test_a_stop_heard_by_another_process_ends_the_hung_tool_and_lets_the_next_turn_in() -> (
    None
):
    ground, second = await paying("queue", "the second answer")
    await second.hears("this instead")
    await second.hears("/stop")
    await passes(7)
    assert ground.chat.texts[-1] == "the second answer"
    assert ground.tools["pay"].ended == 1
    assert await ground.outcomes() == {"answered": 2, "discarded": 1}


@in_virtual_time
async def test_a_stop_heard_by_another_process_ends_the_hung_tool_with_nothing_behind_it() -> None:
    ground, second = await paying("queue")
    await second.hears("/stop")
    await passes(7)
    assert ground.tools["pay"].ended == 1
    assert ground.processes[0].agent.working() == ()


@in_virtual_time
async def test_an_interruption_heard_by_another_process_is_answered_at_once() -> None:
    ground, second = await paying("interrupt", "the second answer")
    await second.hears("this instead")
    await passes(7)
    assert ground.chat.texts[-1] == "the second answer"
    assert ground.tools["pay"].ended == 1


@in_virtual_time
async def test_who_finds_its_result_too_late_does_what_another_process_let_in() -> None:
    """Though no lease is renewed in between."""
    ground, second = await paying("queue", "the second answer", seconds=8.0)
    ground.processes[0].forgets_to_renew()
    await second.hears("this instead")
    await second.hears("/stop")
    await passes(6)
    assert ground.chat.texts[-1] == "the second answer"


@in_virtual_time
async def test_a_wait_that_another_process_began_is_ended() -> None:
    busy = ModelFailure(kind="try_again", detail="429", retry_after=30)
    ground, first, _ = await two_lives(busy, "at last")
    await first.hears("three")
    await passes(3)
    first.dies()

    await passes(60)

    assert ground.chat.texts[-1] == "at last", "a process that is behind must look again"


@in_virtual_time
async def test_a_timer_that_is_no_longer_wanted_is_gone_from_the_store() -> None:
    busy = ModelFailure(kind="try_again", detail="429", retry_after=30)
    ground = Ground("hello", busy)
    process = await ground.starts()
    await process.hears("hi")
    await passes(3)
    assert [timer.kind for timer in await timers(ground)] == ["idle"]
    await process.hears("more")
    await passes(3)
    assert [timer.kind for timer in await timers(ground)] == ["wake"]

    await process.hears("/stop")

    assert await timers(ground) == ()


@in_virtual_time
async def test_what_a_turn_waits_for_dies_with_it() -> None:
    def busy(seconds: float) -> ModelFailure:
        return ModelFailure(kind="try_again", detail="429", retry_after=seconds)

    ground = Ground(busy(30), busy(600), "at last", "and on")
    process = await ground.starts()
    await process.hears("one")
    await passes(3)
    old = (await process.state()).turn.number
    await process.hears("/stop")
    await process.hears("two")
    await passes(3)

    late = ask.Wake(at=ground.clock.now() + timedelta(days=1), turn=old)
    assert not await process.sessions.ask(KEY, late)
    await passes(300)
    assert len(ground.script.requests) == 2, "the wait of the turn before woke this one"

    await passes(600)
    await process.hears("three")
    await passes(3)
    assert ground.chat.texts[-2:] == ["at last", "and on"]
    assert [timer.kind for timer in await timers(ground)] == ["idle"]


async def timers(ground: Ground) -> tuple[Timer, ...]:
    return await ground.store.due(ground.clock.now() + timedelta(days=9))


@in_virtual_time
async def test_a_reminder_that_another_process_set_rings() -> None:
    ground, first, _ = await two_lives(asks("book"), "I will", "Stretch!")
    ground.tools["book"] = Reminding("book", "idempotent")
    await first.hears("remind me")
    await passes(10)
    first.dies()

    await passes(60)

    assert ground.chat.texts[-1] == "Stretch!", "a process that is behind must look again"


@in_virtual_time
async def test_a_snapshot_that_cannot_be_is_passed_over() -> None:
    ground = Ground("hello", "still here")
    ground.policy = Policy(snapshot_every=1)
    first = await ground.starts()
    await first.hears("hi")
    await passes(3)
    first.dies()
    sound = await first.sessions.state(KEY)
    assert sound.session
    spoilt = replace(sound, session=replace(sound.session, usage=Usage(prompt=-1)))
    snapshots = ground.store._snapshots  # pyright: ignore[reportPrivateUsage]
    snapshots[KEY]["data"] = msgspec.json.encode(spoilt).decode()

    second = await ground.starts()
    await second.hears("are you there?")
    await passes(3)

    assert ground.chat.texts == ["hello", "still here"]
    assert "hi" in str(ground.script.requests[-1])
    assert (await second.state()).session.usage == Usage()


@in_virtual_time
async def test_a_restart_reads_a_snapshot_and_little_else() -> None:
    ground = Ground(*["yes"] * 30)
    ground.paces = {}
    first = await ground.starts()
    for number in range(30):
        await first.hears(f"message {number}")
        await passes(3)
    await first.stops()

    stored = await ground.store.load(KEY)

    assert stored.log == ()
    assert stored.snapshot
    assert stored.snapshot == await first.sessions.state(KEY)


class Reminding(FakeTool):
    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        due = context.now() + timedelta(seconds=20)
        return ToolOutput(value="set", events=(reminder(context.call_key, due),))
