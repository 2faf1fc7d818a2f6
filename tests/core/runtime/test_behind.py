"""Whatever the grade, the story is the same; only when it is on disk differs."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from core.domain.events import ModelReplied, Recorded, ToolFinished, ToolStarted, TurnInterrupted
from core.domain.fold import fold
from core.domain.messages import ModelRequest
from core.domain.policy import Durability, Policy
from core.domain.state import SessionState
from core.domain.values import TEXT_LIMIT
from core.ports import Artifact, Commit, Stored, ToolContext, ToolOutput
from core.runtime.behind import MOST_BEHIND, Behind, Decided, bare, together
from core.runtime.holder import Holder
from core.runtime.sessions import CACHED_STATES
from storage.memory import MemoryStore
from storage.store import SqlStore
from tests.contract.values import at, commit, lease, said, state, update
from tests.core.domain.samples import HOME
from tests.core.domain.test_durability import acting
from tests.core.runtime.grades import GRADES, LATE, Disk, Slow, events, log_of
from tests.core.runtime.house import KEY, FakeTool, Ground, Process, asks, passes
from tests.core.runtime.virtual import VirtualClock, in_virtual_time, run_virtually

Story = Callable[[Ground, Process], Awaitable[None]]


async def looks(ground: Ground, process: Process) -> None:
    ground.script.then(asks("look", "look", text="I look"), *[asks("look")] * 4, "seen")
    await process.hears("look around")
    await passes(30)


async def errand(ground: Ground, process: Process) -> None:
    ground.script.then(asks("look", "pay"), asks("book", "look"), asks("look"), "all done")
    await process.hears("go")
    await passes(30)
    ground.script.then(asks("look"), "once more")
    await process.hears("again")
    await passes(30)


async def busy(ground: Ground, process: Process) -> None:
    """Messages come in the middle of a look, whatever the busy mode makes of them."""
    ground.script.then(asks("look"), asks("look", "look"), *["one", "two"] * 3)
    await process.hears("go")
    await passes(3)
    await process.hears("and this")
    await process.hears("and that")
    await passes(60)


async def stopped(ground: Ground, process: Process) -> None:
    ground.script.then(asks("look"), asks("look", "pay"), "hello")
    await process.hears("go")
    await passes(7)
    await process.hears("/stop")
    await passes(10)
    await process.hears("are you there?")
    await passes(10)


async def broken_off(ground: Ground, process: Process) -> None:
    """A clean stop in a look; the next process goes on."""
    ground.script.then(asks("look"), asks("look"), "finished")
    await process.hears("go")
    await passes(7)
    await process.stops(drain=1)
    await ground.starts()
    await passes(60)


async def chatting(ground: Ground, process: Process) -> None:
    ground.script.then("one", "two")
    await process.hears("1")
    await passes(3)
    await process.hears("2")
    await passes(3)


STORIES: tuple[Story, ...] = (looks, errand, busy, stopped, broken_off, chatting)
POLICIES = (Policy(), Policy(busy_mode="steer", snapshot_every=3), Policy(busy_mode="interrupt"))


class Told(msgspec.Struct, frozen=True):
    """All that anyone can tell of a story afterwards, but for how often the disk was written."""

    log: tuple[Recorded, ...]
    texts: list[str]
    outcomes: dict[str, int]
    requests: list[ModelRequest]
    tools: list[Counter[str]]


class Patient(FakeTool):
    """Calls that begin together end one after the other, in their order."""

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        await passes(0.1 * int(context.call_key[-1]))
        return await super().run(arguments, context)


async def lived(story: Story, policy: Policy, seconds: float = 5.0) -> tuple[Ground, Disk]:
    ground, disk = Ground(policy=policy), Disk()
    ground.tools["look"] = Patient("look", "read_only", seconds)
    process = await ground.starts()
    process.disk.killer = disk
    await story(ground, process)
    assert not ground.processes[-1].sessions.unfinished, "nothing is behind after the last answer"
    return ground, disk


async def told(story: Story, policy: Policy) -> Told:
    ground, _ = await lived(story, policy)
    return Told(
        log=await log_of(ground),
        texts=ground.chat.texts,
        outcomes=await ground.outcomes(),
        requests=ground.script.requests,
        tools=[tool.started for tool in ground.tools.values()],
    )


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.busy_mode)
@pytest.mark.parametrize("story", STORIES)
def test_the_story_is_the_same_in_every_grade(story: Story, policy: Policy) -> None:
    with capture_logs() as lines:
        sync, *late = (
            run_virtually(told(story, replace(policy, durability=grade))) for grade in GRADES
        )

    assert [line for line in lines if line["event"] == "turn broke off"] == []
    assert sum(sync.outcomes.values()) > 0
    assert late == [sync, sync]


@in_virtual_time
async def test_the_later_the_grade_the_fewer_the_writes() -> None:
    counted: dict[str, int] = {}
    for grade in GRADES:
        _, disk = await lived(looks, Policy(durability=grade), seconds=0)
        counted[grade] = disk.writes

    assert counted["exit"] == 2, "the message, and the answer with all that led to it"
    assert counted["exit"] < counted["async"] <= counted["sync"]
    assert counted["sync"] == 2 + 5 + 6 * 2


@pytest.mark.parametrize("grade", GRADES)
@in_virtual_time
async def test_what_must_not_lag_is_on_disk_before_it_happens(grade: Durability) -> None:
    ground = Ground(asks("look"), asks("pay"), "paid", policy=Policy(durability=grade))
    ground.tools["pay"].seconds = 5
    process = await ground.starts()
    await process.hears("go")
    assert len(await log_of(ground)) == 4, "opened, received, started, attempted"
    await passes(1)

    kinds = [type(one.event) for one in await log_of(ground)]
    assert sum(ground.tools["pay"].started.values()) == 1
    assert kinds[-1] is ToolStarted
    assert kinds.count(ModelReplied) == 2, "all that led to it came along"
    await passes(5.1)
    assert ground.chat.texts == ["paid"]


@in_virtual_time
async def test_async_is_only_a_moment_behind() -> None:
    ground = Ground(asks("look"), "seen", policy=Policy(durability="async"))
    ground.tools["look"].seconds = 5
    process = await ground.starts()
    await process.hears("go")
    await passes(0.01)

    assert isinstance((await log_of(ground))[-1].event, ToolStarted)


@in_virtual_time
async def test_exit_writes_nothing_of_a_look_before_the_end() -> None:
    ground = Ground(asks("look"), "seen", policy=Policy(durability="exit"))
    ground.tools["look"].seconds = 50
    process = await ground.starts()
    await process.hears("go")
    await passes(49)
    assert len(await log_of(ground)) == 4

    await passes(5)
    assert ground.chat.texts == ["seen"]


@pytest.mark.parametrize("grade", LATE)
@in_virtual_time
async def test_a_snapshot_is_the_state_after_all_that_was_stored_with_it(grade: Durability) -> None:
    ground, _ = await lived(looks, Policy(durability=grade, snapshot_every=7))

    stored = await ground.store.load(KEY)
    log = await log_of(ground)

    assert stored.snapshot
    assert stored.snapshot == fold(SessionState(key=KEY), log[: stored.snapshot.seq])
    assert stored.snapshot.seq > len(log) - 7


@pytest.mark.parametrize("seed", range(10))
@in_virtual_time
async def test_writes_of_a_key_never_overlap_and_go_on_while_the_turn_does(seed: int) -> None:
    dice = random.Random(seed)
    ground = Ground(*[asks("look", "look")] * 3, asks("pay"), asks("look"), *["done"] * 5)
    ground.policy = Policy(durability="async")
    memory, slow = ground.store, Slow(ground.store, lambda: dice.uniform(0, 2))
    ground.store = slow  # pyright: ignore[reportAttributeAccessIssue]
    ground.tools["look"].seconds = 0.5
    process = await ground.starts()
    await process.hears("go")
    for number in range(4):
        await passes(dice.uniform(0, 2))
        await process.hears(f"message {number}")
    await passes(60)
    ground.store = memory

    assert await ground.outcomes() == {"answered": 5}
    assert sum(ground.tools["pay"].started.values()) == 1
    assert sum(ground.tools["look"].started.values()) == 7
    assert any(len(one.log) > 1 for one in slow.commits if bare(one)), "flights carried several"


@in_virtual_time
async def test_a_message_waits_for_the_flight_and_takes_along_what_gathered() -> None:
    ground = Ground(asks("look"), asks("look"), "seen", "and that")
    ground.policy = Policy(durability="async")
    slow = Slow(ground.store, lambda: 1.0)
    ground.store = slow  # pyright: ignore[reportAttributeAccessIssue]
    ground.tools["look"].seconds = 0.2
    process = await ground.starts()
    await process.hears("go")
    await passes(0.3)
    await process.hears("and that")

    kinds = [[type(one.event).__name__ for one in commit.log] for commit in slow.commits[1:]]
    gathered = ["ToolFinished", "ModelReplied", "ToolStarted"]
    assert kinds == [["ModelReplied", "ToolStarted"], [*gathered, "MessageReceived"]]


@in_virtual_time
async def test_a_disk_that_hangs_stops_the_turn() -> None:
    ground = Ground(*[asks("look")] * 100, policy=Policy(durability="async"))
    pauses = iter([0.0, *[1e6] * 100])
    ground.store = Slow(ground.store, lambda: next(pauses))  # pyright: ignore[reportAttributeAccessIssue]
    process = await ground.starts()
    await process.hears("go")
    await passes(1000)

    assert len(ground.script.requests) <= MOST_BEHIND // 3 + 2
    process.dies()


@pytest.mark.parametrize("grade", LATE)
@in_virtual_time
async def test_a_state_that_leaves_the_cache_is_made_again_with_what_is_behind(
    grade: Durability,
) -> None:
    ground = Ground(asks("look"), "seen", policy=Policy(durability=grade))
    ground.tools["look"].seconds = 5
    process = await ground.starts()
    await process.hears("go")
    await passes(1)
    before = await process.state()
    for number in range(CACHED_STATES):
        await process.sessions.state(f"agent:main:chat:dm:stranger{number}")

    assert await process.state() == before
    await passes(10)
    assert ground.chat.texts == ["seen"]
    assert len(ground.script.requests) == 2


class Late(Slow):
    """Its loads of the key bring old news."""

    async def load(self, key: str) -> Stored:
        stored = await self._store.load(key)
        await passes(float(key == KEY))
        return stored


@in_virtual_time
async def test_a_flight_that_lands_during_a_load_is_not_overlooked() -> None:
    ground = Ground(asks("look"), "seen", policy=Policy(durability="async"))
    ground.store = Late(ground.store, lambda: 1.0)  # pyright: ignore[reportAttributeAccessIssue]
    ground.tools["look"].seconds = 20
    process = await ground.starts()
    await process.hears("go")
    await passes(0.5)
    before = await process.state()
    for number in range(CACHED_STATES):
        await process.sessions.state(f"agent:main:chat:dm:stranger{number}")

    assert await process.state() == before
    process.dies()


@pytest.mark.parametrize("grade", LATE)
@in_virtual_time
async def test_a_long_result_that_is_behind_is_kept_whole(grade: Durability) -> None:
    ground = Ground(asks("look", "look"), "seen", policy=Policy(durability=grade))
    ground.tools["look"].result = "x" * (TEXT_LIMIT + 1)
    process = await ground.starts()
    await process.hears("go")
    await passes(3)

    for name in ground.tools["look"].started:
        assert await ground.store.artifact(name) == "x" * (TEXT_LIMIT + 1)


@in_virtual_time
async def test_a_long_result_can_be_read_before_it_is_written() -> None:
    ground = Ground(asks("look"), "seen", policy=Policy(durability="exit"))
    ground.tools["look"].result = "x" * (TEXT_LIMIT + 1)
    process = await ground.starts()
    process.vendor.slow["complete"] = 30
    await process.hears("go")
    await passes(45)
    (name,) = ground.tools["look"].started

    assert await ground.store.artifact(name) is None
    assert await process.sessions.artifact(KEY, name) == "x" * (TEXT_LIMIT + 1)
    await passes(30)
    assert await process.sessions.artifact(KEY, name) == "x" * (TEXT_LIMIT + 1)
    process.dies()


@in_virtual_time
async def test_a_clean_stop_leaves_nothing_behind() -> None:
    ground = Ground(asks("look"), "seen", policy=Policy(durability="exit"))
    ground.tools["look"].seconds = 30
    process = await ground.starts()
    await process.hears("go")
    await passes(1)
    process.sessions.held.clear()
    await process.stops(drain=1)

    log = events(await log_of(ground))
    assert [type(one) for one in log[4:]] == [ModelReplied, ToolStarted, TurnInterrupted]
    assert await ground.store.abandoned(ground.clock.now()) == (KEY,)
    assert (await ground.store.load(KEY)).snapshot == await process.state()


@in_virtual_time
async def test_a_log_that_is_set_aside_takes_what_is_behind_with_it() -> None:
    ground = Ground(asks("look"), "hello", policy=Policy(durability="exit"))
    ground.tools["look"].seconds = 500
    process = await ground.starts()
    await process.hears("go")
    await passes(1)
    ground.store._logs[KEY].pop(1)  # pyright: ignore[reportPrivateUsage]
    for number in range(CACHED_STATES):
        await process.sessions.state(f"agent:main:chat:dm:stranger{number}")
    await process.hears("are you there?")
    await passes(5)

    assert ground.chat.texts[-1] == "hello"
    assert len({one.seq for one in await log_of(ground)}) == (await process.state()).seq


def test_commits_that_are_written_together_are_one() -> None:
    first = commit(KEY, 4, said("a"), lease=lease("here", 1), session_id="s", open_turn=True)
    second = replace(commit(KEY, 5, said("b"), said("c")), at=at(9), inbox=update())
    states = state(KEY, 5), state(KEY, 7)
    first = replace(first, artifacts=(Artifact("a", "1"),))
    second = replace(second, artifacts=(Artifact("b", "2"),))

    plain = together([Decided(first, states[0]), Decided(second, states[1])])
    assert plain == replace(
        second,
        expected_seq=4,
        log=(*first.log, *second.log),
        artifacts=(*first.artifacts, *second.artifacts),
    )

    marked = replace(first, snapshot=states[0])
    shot = together([Decided(marked, states[0]), Decided(second, states[1])])
    assert shot.snapshot == states[1], "the state after all of it"
    assert together([Decided(first, states[0])]) == first


@pytest.mark.parametrize(
    "name", ["inbox", "settled", "outbox", "timers", "cleared", "access", "open_turn"]
)
def test_a_commit_that_promises_anything_does_not_lag(name: str) -> None:
    look = ToolStarted(turn=1, step=1, call_id="c1")
    before = acting()
    plain = commit(before.key, before.seq, look, open_turn=True, lease=lease(), session_id="s")
    behind = Behind(MemoryStore(), "exit", VirtualClock(), Holder("here"))
    assert behind.may_wait(before, plain)
    value = (1,) if name != "open_turn" else False
    assert not behind.may_wait(before, replace(plain, **{name: value}))
    assert name in {field.name for field in msgspec.structs.fields(Commit)}


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await condition():
            await passes(0.01)


async def on_disk(url: str, grade: Durability) -> list[Any]:
    """What the log says of a conversation with one person a grade."""
    ground = Ground(asks("look"), asks("look"), asks("pay"), asks("look"), "all done")
    ground.policy = Policy(durability=grade)
    store = await SqlStore.open(url)
    ground.store = store  # pyright: ignore[reportAttributeAccessIssue]
    process = await ground.starts()
    await process.hears("go", address=replace(HOME, chat=grade), user=grade, update_id=grade)

    async def answered() -> bool:
        return "all done" in ground.chat.texts

    await until(answered)
    await process.stops()
    process.dies()
    log = await store.events(f"agent:main:chat:dm:{grade}")
    await store.close()
    return [(one.seq, type(one.event), getattr(one.event, "step", 0)) for one in log]


async def test_real_databases_hold_the_same_log_in_every_grade(database_url: str) -> None:
    logs = [await on_disk(database_url, grade) for grade in GRADES]

    assert logs[0] == logs[1] == logs[2]
    assert [kind for _, kind, _ in logs[0]].count(ToolFinished) == 4
