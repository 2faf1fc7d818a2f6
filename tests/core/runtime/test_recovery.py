"""A process that dies anywhere, and the next one."""

import asyncio
from itertools import pairwise

import pytest
from msgspec.structs import replace

from core.domain.messages import ModelReply, ModelRequest, RequestSize
from core.domain.policy import Policy
from core.ports import Commit, OnText
from storage.memory import MemoryStore
from tests.core.domain.samples import HOME
from tests.core.runtime.house import KEY, LEASE, Ground, asks, passes
from tests.core.runtime.virtual import in_virtual_time


def errand() -> Ground:
    return Ground(asks("look"), asks("book"), asks("pay"), "all done")


@in_virtual_time
async def test_a_turn_goes_on_after_a_death_without_a_word_from_the_user() -> None:
    ground = errand()
    ground.tools["book"].seconds = 100
    first = await ground.starts()
    await first.hears("go")
    await passes(5)
    first.dies()
    ground.tools["book"].seconds = 0

    await passes(LEASE)
    await ground.starts()
    await passes(5)

    assert ground.chat.texts == ["all done"]
    assert await ground.outcomes() == {"answered": 1}


@in_virtual_time
async def test_a_message_right_after_the_start_makes_no_second_turn() -> None:
    def echo(request: ModelRequest) -> str:
        return f"re: {request.messages[-1].text}"

    ground = Ground(echo, echo, echo)
    ground.script.hold()
    first = await ground.starts()
    await first.hears("one")
    await passes(1)
    first.dies()
    await passes(LEASE)

    second = await ground.starts()
    await second.hears("two")
    await passes(1)
    assert len(ground.script.requests) == 2, "one call a life"
    ground.script.release()
    await passes(3)

    resumed, answered = ground.chat.texts
    assert resumed.startswith("re: one")
    assert answered == "re: two"
    assert len(ground.script.requests) == 3
    assert await ground.outcomes() == {"answered": 2}


@in_virtual_time
async def test_a_long_absence_is_said() -> None:
    ground = errand()
    ground.tools["look"].seconds = 100
    first = await ground.starts()
    await first.hears("go")
    await passes(5)
    first.dies()
    ground.tools["look"].seconds = 0

    await passes(120)
    await ground.starts()
    await passes(5)

    assert ground.chat.texts == ["_(I was interrupted; picking up at step 1.)_", "all done"]


@pytest.mark.parametrize(("tool", "runs"), [("look", 2), ("book", 2), ("pay", 1)])
@in_virtual_time
async def test_only_a_tool_that_may_run_twice_does(tool: str, runs: int) -> None:
    ground = Ground(asks(tool), "all done")
    ground.tools[tool].seconds = 30
    first = await ground.starts()
    await first.hears("go")
    await passes(5)
    first.dies()
    await passes(LEASE)
    await ground.starts()
    await passes(60)

    assert sum(ground.tools[tool].started.values()) == runs
    assert len(ground.tools[tool].started) == 1, "the same call has the same name in each life"
    assert ground.chat.texts[-1] == "all done"


@in_virtual_time
async def test_a_message_that_was_only_taken_is_answered_by_the_next_life() -> None:
    ground = Ground("hello")
    first = await ground.starts()
    first.disk.killer = Killer(0, "after")
    taking = asyncio.create_task(first.hears("hi"))
    await asyncio.wait({taking})
    first.dies()

    await passes(LEASE)
    await ground.starts()
    await passes(5)

    assert ground.chat.texts == ["hello"]


class Killer:
    """Asked around each commit; yes at the one with this number."""

    def __init__(self, number: int, moment: str) -> None:
        self.left = number
        self.moment = moment

    def __call__(self, moment: str) -> bool:
        self.left -= moment == self.moment
        return self.left < 0


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 13))
@in_virtual_time
async def test_killed_around_any_commit_every_promise_holds(number: int, moment: str) -> None:
    ground = Ground()
    ground.script.then(*[answer_what_is_asked] * 20)
    first = await ground.starts()
    first.disk.killer = Killer(number, moment)
    await first.hears("go")
    await passes(30)
    first.dies()

    second = await ground.starts()
    await passes(LEASE + 30)

    ends = [text for text in ground.chat.texts if text == "all done"]
    assert ends == ["all done"]
    assert sum(ground.tools["pay"].started.values()) <= 1
    assert await ground.outcomes() == {"answered": 1}
    assert (await second.state()).turn is None


def answer_what_is_asked(request: ModelRequest) -> str | ModelReply:
    """Looks, books and pays, once each as far as it can see, and then says so."""
    seen = str(request)
    left = [tool for tool in ("look", "book", "pay") if f"name='{tool}'" not in seen]
    return asks(left[0]) if left else "all done"


class DeadlyModel:
    """One kind of request takes its process down in a second, all others are answered in three."""

    name = "deadly"

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def measure(self, request: ModelRequest) -> RequestSize:
        return RequestSize()

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        deadly = request.messages[1].text.startswith("kill")
        await passes(1 if deadly else 3)
        if deadly:
            self._ground.processes[-1].dies()
        return ModelReply(text="kind")


async def killed_again_and_again(texts: list[str]) -> dict[str, int]:
    """One person a text; each time the service dies it is started again."""
    ground = Ground()
    ground.model = DeadlyModel(ground)
    process = await ground.starts()
    for number, text in enumerate(texts):
        home = replace(HOME, chat=str(number))
        await process.hears(text, address=home, user=str(number))
    for _ in range(10):
        await passes(100)
        await ground.starts()
    return await ground.outcomes()


@in_virtual_time
async def test_a_turn_that_kills_is_put_aside_and_those_that_died_with_it_are_answered() -> None:
    assert await killed_again_and_again(["kill", "a", "b"]) == {"answered": 2, "failed": 1}


@in_virtual_time
async def test_a_turn_that_never_got_its_place_has_not_used_up_an_attempt() -> None:
    crowd = [f"kind {number}" for number in range(8)]

    assert await killed_again_and_again([*crowd, "kill"]) == {"answered": 8, "failed": 1}


@in_virtual_time
async def test_a_turn_that_kills_waits_longer_each_time_and_is_put_aside_after_five() -> None:
    ground = Ground(policy=Policy())
    ground.script.hold()
    begun: list[float] = []
    await (await ground.starts()).hears("kill")
    for _ in range(5):
        asked = len(ground.script.requests)
        while len(ground.script.requests) == asked:
            await passes(0.5)
        begun.append(round(ground.clock.now().timestamp()))
        ground.processes[-1].dies()
        await passes(LEASE)
        await ground.starts()
    await passes(100)

    pauses = [b - a for a, b in pairwise(begun)]
    assert pauses == pytest.approx([15, 20, 45, 75], abs=2)
    assert "broke off 5 times" in ground.chat.texts[-1]
    assert await ground.outcomes() == {"failed": 1}
    assert KEY not in await ground.store.abandoned(ground.clock.now())


@in_virtual_time
async def test_a_turn_of_a_platform_that_is_not_set_up_waits_for_it() -> None:
    ground = Ground(asks("look"), "found")
    ground.tools["look"].seconds = 30
    first = await ground.starts()
    await first.hears("go")
    await passes(5)
    first.dies()

    ground.platform_set_up = False
    bare = await ground.starts()
    await passes(600)
    bare.dies()
    ground.platform_set_up = True
    await ground.starts()
    await passes(100)

    assert ground.chat.texts[-1] == "found"


@in_virtual_time
async def test_a_process_leaves_its_own_living_turn_alone_when_its_lease_ran_out() -> None:
    ground = Ground(asks("pay"), "paid once")
    ground.tools["pay"].seconds = 30
    process = await ground.starts()
    await process.hears("pay it")
    await passes(2)
    process.forgets_to_renew()
    await passes(LEASE + 1)
    await process.recovery.run()
    await passes(30)

    assert ground.chat.texts == ["paid once"]
    assert sum(ground.tools["pay"].started.values()) == 1
    shown = [getattr(m, "text", "") for m in ground.script.requests[-1].messages]
    assert "pay: done" in shown


class Picky(MemoryStore):
    """It breaks over one key in a way that nobody thought of."""

    bad = ""

    async def commit(self, commit: Commit) -> int:
        if commit.key == self.bad:
            raise TypeError("nobody thought of this")
        return await super().commit(commit)


@in_virtual_time
async def test_a_stop_lets_every_turn_go_but_the_one_that_breaks() -> None:
    ground = Ground()
    ground.store = store = Picky()
    ground.script.hold()
    process = await ground.starts()
    await process.hears("hello")
    await process.hears("hello", address=replace(HOME, chat="8"), user="8")
    await passes(2)
    store.bad = KEY
    await process.recovery.interrupt((KEY, "agent:main:chat:dm:8"))
    assert await store.abandoned(ground.clock.now()) == ("agent:main:chat:dm:8",)
