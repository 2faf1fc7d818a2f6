"""How a turn is worked on, from the outside: the chat, the model's requests, the tools' ledgers."""

import pytest

from core.domain.messages import ModelFailure, ToolCall
from core.domain.policy import Durability, Policy
from core.domain.state import Phase, SessionState
from core.domain.values import TEXT_LIMIT
from core.errors import StorageError, UnstorableError
from core.ports import Commit
from storage.memory import MemoryStore
from tests.core.runtime.grades import GRADES
from tests.core.runtime.house import KEY, Ground, asks, passes, spoil
from tests.core.runtime.virtual import in_virtual_time


@in_virtual_time
async def test_tools_run_and_their_results_reach_the_model() -> None:
    ground = Ground(asks("look", "pay"), "found and paid")
    process = await ground.starts()

    await process.hears("find it and pay")
    await passes(5)

    assert ground.chat.texts == ["found and paid"]
    assert [m.text for m in ground.script.requests[1].messages[-2:]] == ["look: done", "pay: done"]
    assert sum(ground.tools["pay"].started.values()) == 1


@in_virtual_time
async def test_looking_goes_side_by_side_and_acting_one_after_the_other() -> None:
    ground = Ground(asks("look", "look", "look"), asks("pay", "pay"), "done")
    ground.tools["look"].seconds = 10
    ground.tools["pay"].seconds = 10
    process = await ground.starts()

    await process.hears("go")
    await passes(9)
    assert sum(ground.tools["look"].started.values()) == 3
    await passes(4)
    assert sum(ground.tools["pay"].started.values()) == 1
    await passes(22)

    assert ground.chat.texts == ["done"]


@in_virtual_time
async def test_tools_side_by_side_that_find_the_log_broken_set_it_aside() -> None:
    ground = Ground(asks("look", "look"), "a new start")
    ground.tools["look"].seconds = 10
    process, other = await ground.starts(), await ground.starts()
    await process.hears("go")
    await passes(4)
    await other.hears("more")
    spoil(ground)
    await passes(8)

    assert "could not be read" in ground.chat.texts[-1]
    await process.hears("hello?")
    await passes(3)
    assert ground.chat.texts[-1] == "a new start"


@in_virtual_time
async def test_stop_ends_a_hanging_model_call_at_once() -> None:
    ground = Ground("never said")
    process = await ground.starts()
    ground.script.hold()
    await process.hears("think")
    await passes(100)

    await process.hears("/stop")
    await passes(0.9)

    assert ground.chat.texts[-1].startswith("Stopped at step 1.")
    assert process.agent.working() == ()
    ground.script.release()
    await passes(100)
    assert "never said" not in ground.chat.texts


@in_virtual_time
async def test_a_turn_outlasts_a_database_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ground = Ground(asks("look"), "done")
    process = await ground.starts()
    read, faults = process.sessions.state, [StorageError("away"), StorageError("away")]

    async def often_away(key: str) -> SessionState:
        return await read(key) if not faults else _raised(faults.pop())

    monkeypatch.setattr(process.sessions, "state", often_away)
    await process.hears("go")
    await passes(5)

    assert ground.chat.texts == ["done"]


def _raised(error: Exception) -> SessionState:
    raise error


@in_virtual_time
async def test_a_stop_that_cannot_be_stored_stops_nothing() -> None:
    ground = Ground("said after all")
    process = await ground.starts()
    ground.script.hold()
    await process.hears("think")
    process.disk.faults.append("before")

    with pytest.raises(Exception, match="disk is full"):
        await process.hears("/stop")
    ground.script.release()
    await passes(3)

    assert ground.chat.texts == ["said after all"]


@in_virtual_time
async def test_after_a_stop_the_next_message_is_a_new_conversation_and_resume_goes_back() -> None:
    ground = Ground("Hello Ada", "who?", "Ada")
    process = await ground.starts()
    await process.hears("I am Ada")
    await passes(2)
    ground.script.hold()
    await process.hears("think")
    await process.hears("/stop")
    ground.script.release()

    await process.hears("who am I?")
    await passes(2)
    await process.hears("/resume")
    await process.hears("who am I?")
    await passes(3)

    fresh, back = str(ground.script.requests[-2]), str(ground.script.requests[-1])
    assert "I am Ada" not in fresh
    assert "I am Ada" in back


@in_virtual_time
async def test_a_reply_is_kept_until_the_database_takes_it() -> None:
    ground = Ground("worth keeping")
    process = await ground.starts()
    ground.script.hold()
    await process.hears("hi")
    process.disk.faults.extend(["before", "before", "before"])
    ground.script.release()

    await passes(1)
    assert "worth keeping" not in ground.chat.texts
    await passes(20)

    assert ground.chat.texts[-1] == "worth keeping"
    assert len(ground.script.requests) == 1


@in_virtual_time
async def test_a_reply_that_was_stored_with_an_error_is_said_once() -> None:
    ground = Ground("said once")
    process = await ground.starts()
    ground.script.hold()
    await process.hears("hi")
    process.disk.faults.append("after")
    ground.script.release()

    await passes(60)

    assert ground.chat.texts == ["said once"]
    assert len(ground.script.requests) == 1


@in_virtual_time
async def test_a_tool_whose_start_is_doubtful_is_not_run_on_a_guess() -> None:
    ground = Ground(asks("pay"), "I have to check")
    process = await ground.starts()
    await process.hears("pay")
    process.disk.faults.extend(["", "after"])

    await passes(60)

    assert sum(ground.tools["pay"].started.values()) == 0
    assert "outcome unknown" in ground.script.requests[-1].messages[-2].text
    assert ground.chat.texts[-1] == "I have to check"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (ToolCall("c1", "nothing", "{}"), "There is no tool 'nothing'"),
        (ToolCall("c1", "look", "{nonsense"), "not a JSON object"),
        (ToolCall("c1", "look", "[1]"), "not a JSON object"),
        (ToolCall("c1", "look", '{"a":' * 100_000), "not a JSON object"),
    ],
)
@in_virtual_time
async def test_a_call_that_makes_no_sense_is_told_to_the_model(call: ToolCall, told: str) -> None:
    reply = asks("look")
    ground = Ground(type(reply)(text="", calls=(call,)), "sorry")
    process = await ground.starts()

    await process.hears("go")
    await passes(3)

    assert told in ground.script.requests[1].messages[-1].text
    assert ground.chat.texts == ["sorry"]


@in_virtual_time
async def test_a_tool_that_breaks_or_hangs_does_not_break_the_turn() -> None:
    ground = Ground(asks("look"), asks("book"), asks("pay"), "sorry")
    ground.tools["look"].result = ValueError("secret detail")
    ground.tools["book"].seconds = 1e6
    ground.tools["pay"].result = Unwritable()
    process = await ground.starts()

    await process.hears("go")
    await passes(70)

    broken, hung, unwritable = [r.messages[-1].text for r in ground.script.requests[1:]]
    assert "failed (error id" in broken
    assert "secret detail" not in broken
    assert hung == "Broken off after 60 s without a result."
    assert "failed (error id" in unwritable
    assert ground.chat.texts[-1] == "sorry"


@in_virtual_time
async def test_a_long_result_is_kept_whole_beside_the_log() -> None:
    ground = Ground(asks("look"), "long")
    ground.tools["look"].result = "x" * (TEXT_LIMIT + 1)
    process = await ground.starts()

    await process.hears("go")
    await passes(3)

    shown = ground.script.requests[1].messages[-1].text
    name = shown.partition('id "')[2].partition('"')[0]
    assert await ground.store.artifact(name) == "x" * (TEXT_LIMIT + 1)


@in_virtual_time
async def test_a_failure_of_the_model_is_told_without_its_detail_and_retry_answers() -> None:
    ground = Ground(ModelFailure(kind="never", detail="sk-secret"), "now it works")
    process = await ground.starts()

    await process.hears("hi")
    await passes(2)
    assert "sk-secret" not in ground.chat.texts[0]
    await process.hears("/retry")
    await passes(3)

    assert ground.chat.texts[-1] == "now it works"
    assert await ground.outcomes() == {"answered": 2}


@in_virtual_time
async def test_a_rate_limit_is_slept_in_the_database_and_survives_a_death() -> None:
    ground = Ground(ModelFailure(kind="try_again", detail="429", retry_after=60), "at last")
    first = await ground.starts()
    await first.hears("hi")
    await passes(5)
    first.dies()
    await passes(10)
    await ground.starts()

    await passes(40)
    assert len(ground.script.requests) == 1
    await passes(10)

    assert ground.chat.texts[-1] == "at last"


@in_virtual_time
async def test_messages_of_a_busy_time_become_one_turn() -> None:
    ground = Ground("one", "two and three")
    process = await ground.starts()
    ground.script.hold()
    await process.hears("1")
    await process.hears("2")
    await process.hears("3")
    ground.script.release()
    await passes(5)

    assert ground.chat.texts == ["one", "two and three"]
    assert ground.script.requests[1].messages[-1].text == "2\n\n3"


@in_virtual_time
async def test_an_interrupting_message_cancels_the_call_of_the_model() -> None:
    ground = Ground("to the second", policy=Policy(busy_mode="interrupt"))
    process = await ground.starts()
    ground.script.hold()
    await process.hears("first")
    await passes(5)
    await process.hears("second")
    await passes(5)
    ground.script.release()
    await passes(5)

    assert ground.chat.texts[-1] == "to the second"
    assert ground.script.left == 0
    assert (await process.state()).phase is Phase.IDLE


@in_virtual_time
async def test_a_clean_stop_lets_the_turn_finish_and_takes_no_new_one_up() -> None:
    ground = Ground(asks("look"), "finished", "later")
    ground.tools["look"].seconds = 5
    process = await ground.starts()
    await process.hears("go")
    await passes(1)

    await process.stops(drain=20)

    assert ground.chat.texts == ["finished"]
    second = await ground.starts()
    await second.hears("more")
    await passes(2)
    assert ground.chat.texts[-1] == "later"


@in_virtual_time
async def test_a_clean_stop_in_the_middle_goes_on_at_the_next_start_without_a_word() -> None:
    ground = Ground(asks("look"), "finished")
    ground.tools["look"].seconds = 30
    process = await ground.starts()
    await process.hears("go")
    await passes(1)
    await process.stops(drain=5)
    assert await ground.store.abandoned(ground.clock.now()) == (KEY,)
    ground.tools["look"].seconds = 1

    await ground.starts()
    await passes(5)

    assert ground.chat.texts == ["finished"]


@in_virtual_time
async def test_a_step_costs_no_time_of_its_own() -> None:
    ground = Ground(*[asks("look")] * 20, "done")
    process = await ground.starts()
    began = ground.clock.now()

    await process.hears("go")
    while process.agent.working():
        await passes(0.01)

    assert (ground.clock.now() - began).total_seconds() < 1


class Unwritable:
    def __str__(self) -> str:
        raise KeyError("no words")


class Picky(MemoryStore):
    """Never takes a snowman."""

    async def commit(self, commit: Commit) -> int:
        if "☃" in str(commit.log):
            raise UnstorableError("value too cold for column")
        return await super().commit(commit)


@pytest.mark.parametrize("grade", GRADES)
@pytest.mark.parametrize("tool", ["look", "pay"])
@in_virtual_time
async def test_a_result_that_can_never_be_stored_ends_the_turn_and_is_told(
    tool: str, grade: Durability
) -> None:
    ground = Ground(asks(tool, "look"), "found", "fine", policy=Policy(durability=grade))
    ground.store = Picky()
    ground.tools[tool].result = "☃"
    process = await ground.starts()

    await process.hears("search")
    await process.hears("and now?")
    await passes(60)

    assert "database does not take" in ground.chat.texts[0]
    assert await ground.outcomes() == {"failed": 1, "answered": 1}
    assert ground.tools[tool].started.total() <= 2
    assert process.agent.working() == ()


@in_virtual_time
async def test_an_answer_that_can_never_be_stored_ends_the_turn_and_is_told() -> None:
    ground = Ground("☃", "fine")
    ground.store = Picky()
    process = await ground.starts()

    await process.hears("hi")
    await passes(5)
    await process.hears("are you there?")
    await passes(5)

    assert "database does not take" in ground.chat.texts[0]
    assert ground.chat.texts[1:] == ["fine"]


@pytest.mark.parametrize("grade", ["async", "exit"])
@in_virtual_time
async def test_a_message_that_can_never_be_stored_does_not_cost_the_turn_under_way(
    grade: Durability,
) -> None:
    ground = Ground(asks("look"), asks("look"), "found", policy=Policy(durability=grade))
    ground.store = Picky()
    ground.tools["look"].seconds = 5
    process = await ground.starts()
    await process.hears("search")
    await passes(7)

    with pytest.raises(UnstorableError):
        await process.hears("☃")
    await passes(60)

    assert ground.chat.texts == ["found"]
    seen = [message.text for message in ground.script.requests[-1].messages]
    assert seen.count("look: done") == 2, "what was found before is still known"
