"""Several processes on one database: who runs what, and what one may do that slept."""

import asyncio

from msgspec.structs import replace

from core.domain.messages import ModelReply, ModelRequest, RequestSize
from core.ports import Commit, OnText
from storage.memory import MemoryStore
from tests.core.domain.samples import HOME
from tests.core.runtime.house import KEY, LEASE, Ground, Process, asks, passes
from tests.core.runtime.virtual import in_virtual_time


class Slow:
    """``core.ports.Model`` whose answer takes ``seconds``; it counts how many are under way."""

    name = "slow"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = self.most = 0
        self.requests: list[ModelRequest] = []

    async def measure(self, request: ModelRequest) -> RequestSize:
        return RequestSize()

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        self.requests.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        return ModelReply(text="done", model="slow")


async def crowd_of(process: Process, size: int) -> None:
    for user in range(1000, 1000 + size):
        await process.hears("hello", user=f"{user}", address=replace(HOME, chat=f"{user}"))


@in_virtual_time
async def test_one_that_takes_messages_leaves_the_turns_to_one_that_runs_them() -> None:
    ground = Ground("hello yourself")
    front = await ground.starts("front", most=0)
    await front.hears("hello")
    await passes(5)
    assert ground.script.requests == [], "nobody is there to run it"

    began = asyncio.get_running_loop().time()
    await ground.starts("back")
    await passes(1)

    assert ground.chat.texts == ["hello yourself"]
    assert asyncio.get_running_loop().time() - began < 2
    told = [getattr(m, "text", "") for m in ground.script.requests[0].messages]
    assert not any("interrupted" in text for text in told), "nobody was at work on it before"
    assert await ground.outcomes() == {"answered": 1}


@in_virtual_time
async def test_who_runs_turns_is_told_of_a_new_one_at_once() -> None:
    ground = Ground("hello yourself")
    await ground.starts("back")
    front = await ground.starts("front", most=0)
    await passes(0.5)
    await front.hears("hello")
    await passes(0.05)

    assert len(ground.script.requests) == 1


@in_virtual_time
async def test_no_process_runs_more_turns_than_it_has_room_for() -> None:
    ground = Ground()
    ground.model = model = Slow(2.0)
    process = await ground.starts(most=3)
    await crowd_of(process, 10)
    await passes(30)

    assert model.most == 3
    assert len(ground.chat.texts) == 10
    assert await ground.outcomes() == {"answered": 10}
    told = [getattr(m, "text", "") for r in model.requests for m in r.messages]
    assert not any("interrupted" in text for text in told), "who only waited was not interrupted"


@in_virtual_time
async def test_a_place_that_is_free_again_is_not_left_empty() -> None:
    ground = Ground()
    ground.model = Slow(0.3)
    process = await ground.starts(most=1)
    began = asyncio.get_running_loop().time()
    await crowd_of(process, 10)
    while len(ground.chat.texts) < 10:
        await passes(0.05)

    assert asyncio.get_running_loop().time() - began < 10 * 0.3 + 1.5


@in_virtual_time
async def test_what_one_has_no_room_for_another_takes() -> None:
    ground = Ground()
    ground.model = model = Slow(5.0)
    first = await ground.starts("first", most=2)
    await ground.starts("second", most=2)
    await crowd_of(first, 4)
    await passes(2)
    assert model.now == 4

    await passes(20)
    assert await ground.outcomes() == {"answered": 4}


@in_virtual_time
async def test_a_message_that_comes_at_a_stop_is_answered_by_another_at_once() -> None:
    ground = Ground("the first answer", "the second answer")
    leaving = await ground.starts("leaving")
    ground.script.hold()
    await leaving.hears("one")
    await passes(1)
    coming = await ground.starts("coming")
    stop = asyncio.create_task(leaving.stops())
    await passes(1)
    await coming.hears("two")
    await coming.hears("other", user="8", address=replace(HOME, chat="8"))
    await passes(0.5)
    ground.script.release()
    ground.script.then("the third answer")
    await passes(2)
    await stop

    assert await ground.outcomes() == {"answered": 3}
    assert len(ground.chat.texts) == 3


@in_virtual_time
async def test_the_next_turn_of_a_process_that_stops_is_anothers() -> None:
    """It was queued behind one that may end first: nobody waits out the rest of the stop."""
    ground = Ground()
    ground.model = model = Slow(3.0)
    leaving = await ground.starts("leaving")
    await leaving.hears("one")
    await passes(0.5)
    await leaving.hears("two")
    coming = await ground.starts("coming")
    stop = asyncio.create_task(leaving.stops())
    await passes(3.0)

    assert KEY in coming.sessions.held
    assert model.now == 1
    await passes(5)
    await stop
    assert await ground.outcomes() == {"answered": 2}
    told = [getattr(m, "text", "") for m in model.requests[-1].messages]
    assert not any("interrupted" in text for text in told)


@in_virtual_time
async def test_a_stop_said_to_another_process_ends_the_turn_at_once() -> None:
    ground = Ground()
    ground.model = model = Slow(60.0)
    first = await ground.starts("first")
    second = await ground.starts("second")
    await first.hears("one")
    await passes(1)
    await second.hears("/stop")
    await passes(0.2)

    assert model.now == 0


@in_virtual_time
async def test_a_reply_that_comes_after_the_lease_was_lost_is_not_stored() -> None:
    """Though the other process has let go again, and the turn and the step are the same."""
    ground = Ground("from the first")
    asleep = await ground.starts("asleep")
    ground.script.hold()
    await asleep.hears("hello")
    await passes(1)
    asleep.forgets_to_renew()
    await passes(LEASE + 1)
    second = await ground.starts("second")
    await passes(2)
    assert KEY in second.sessions.held
    await second.stops(drain=0)
    log = len(await ground.store.events(KEY))

    ground.script.release()
    await passes(0.05)
    assert len(await ground.store.events(KEY)) == log, "it was another's in between"
    assert ground.chat.texts == []

    ground.script.then("from the third")
    await ground.starts("third")
    await passes(30)
    assert len(ground.chat.texts) == 1
    assert await ground.outcomes() == {"answered": 1}


@in_virtual_time
async def test_a_tool_is_not_run_by_who_slept_after_its_start_was_stored() -> None:
    ground = Ground(asks("pay"), "I had to look again")
    ground.store = store = Dozing()
    asleep = await ground.starts("asleep")
    store.sleeper = asleep
    await asleep.hears("pay it")
    await passes(0.5)
    second = await ground.starts("second")
    asleep.dozes()
    await passes(LEASE + 3)
    assert second.sessions.held or ground.chat.texts, "it was taken up"
    store.woken.set()
    await passes(30)

    assert sum(ground.tools["pay"].started.values()) == 0, "nobody knows, so nobody repeats it"
    assert ground.chat.texts == ["I had to look again"]


class Dozing(MemoryStore):
    """One process falls asleep between the commit of a tool's start and its running."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeper: Process | None = None
        self.woken = asyncio.Event()

    async def commit(self, commit: Commit) -> int:
        stream = await super().commit(commit)
        started = any(type(one.event).__name__ == "ToolStarted" for one in commit.log)
        lease = commit.lease
        mine = self.sleeper is not None and lease is not None
        if started and mine and lease is not None and lease.owner == "asleep":
            await self.woken.wait()
        return stream
