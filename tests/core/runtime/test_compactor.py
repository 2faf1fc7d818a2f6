"""A conversation whose older part is summed up, by the real runtime on virtual time."""

import pytest

from core.domain.events import (
    Compacted,
    CompactionAttempted,
    CompactionFailed,
    ContextNarrowed,
)
from core.domain.messages import (
    ModelFailure,
    ModelReply,
    ModelRequest,
    Usage,
)
from core.domain.policy import Policy
from core.models.scripted import ScriptedModel
from tests.core.runtime.house import KEY, asks, passes
from tests.core.runtime.summed import (
    IN_VAIN,
    LONG,
    PROMISED,
    SUMMARY,
    Talker,
    answers,
    asked,
    ground,
    happened,
    held,
    shown,
    talks,
    told,
    too_long,
)
from tests.core.runtime.virtual import in_virtual_time


@in_virtual_time
async def test_older_turns_become_a_summary_when_the_window_fills() -> None:
    made = ground(SUMMARY)
    process = await made.starts()

    await talks(process, 5)

    assert len(told(made, PROMISED)) == 1
    await talks(process, 1, "who am I?")
    last = shown(made.script.requests[-1])
    assert "called Anna" in last
    assert "0: word" not in last
    assert "4: word" in last
    assert await made.outcomes() == {"answered": 6}


@in_virtual_time
async def test_what_it_cost_is_told_and_counted() -> None:
    made = ground(ModelReply(text=SUMMARY, usage=Usage(900, 40, 0.25)))
    process = await made.starts()

    await talks(process, 5)

    assert "$0.2500" in told(made, PROMISED)[0]
    assert (await process.state()).session.usage.cost == 0.25


@in_virtual_time
async def test_who_writes_meanwhile_is_answered_at_once() -> None:
    made = ground(SUMMARY)
    summarizer = held(made)
    process = await made.starts()
    await talks(process, 5)
    assert len(asked(made)) == 1

    await talks(process, 1, "and now?")

    assert answers(made) == 6
    assert told(made, PROMISED) == []
    summarizer.release()
    await passes(1)
    assert len(told(made, PROMISED)) == 1
    assert len(asked(made)) == 1


@in_virtual_time
async def test_nobody_who_waits_for_nothing_sees_typing() -> None:
    made = ground(SUMMARY)
    held(made)
    process = await made.starts()
    await talks(process, 5)
    before = len(made.chat.calls("typing"))

    await passes(60)

    assert len(made.chat.calls("typing")) == before


@in_virtual_time
async def test_a_turn_that_does_not_fit_waits_for_the_summary_and_types() -> None:
    made = ground(SUMMARY)
    summarizer = held(made)
    process = await too_long(made)
    assert len(asked(made)) == 1
    before = len(made.chat.calls("typing"))

    await passes(60)
    assert len(made.chat.calls("typing")) == pytest.approx(before + 14, abs=2)
    summarizer.release()
    await passes(5)

    assert answers(made) == 4
    assert "called Anna" in shown(made.script.requests[-1])
    typed = len(made.chat.calls("typing"))
    await passes(60)
    assert len(made.chat.calls("typing")) == typed
    assert process.working() == ()


@in_virtual_time
async def test_one_turn_asks_for_one_summary_whatever_comes_of_it() -> None:
    made = ground(*[ModelFailure(kind="try_again", detail="503")] * 9)
    process = await made.starts()
    await talks(process, 3)
    talker = made.script
    assert isinstance(talker, Talker)
    steps = iter([asks("look", text="word " * 350)] * 4)
    talker.overheard = lambda request: next(steps, None)

    await process.hears("do it")
    await passes(30)

    assert len(asked(made)) == 1
    assert len(await happened(made, ContextNarrowed)) >= 2, "it was too long again"
    assert await made.outcomes() == {"answered": 4}


@in_virtual_time
async def test_a_summary_that_helped_is_not_asked_for_again_before_it_is_needed() -> None:
    made = ground(*[SUMMARY] * 9)
    process = await made.starts()

    await talks(process, 5)
    await talks(process, 6, "short")

    assert len(asked(made)) == 1


@in_virtual_time
async def test_a_summary_that_failed_is_not_tried_with_each_message() -> None:
    made = ground(*[ModelFailure(kind="try_again", detail="503")] * 9)
    process = await made.starts()

    await talks(process, 4)
    await talks(process, 6, "short")

    assert len(asked(made)) == 1
    assert len(told(made, IN_VAIN)) == 1


@pytest.mark.parametrize("command", ["/new", "/stop"])
@in_virtual_time
async def test_one_that_is_not_wanted_any_more_ends(command: str) -> None:
    made = ground(SUMMARY)
    held(made)
    process = await too_long(made)
    assert process.compactor.working() == (KEY,)

    await process.hears(command)
    await passes(1)

    assert process.working() == ()
    typed = len(made.chat.calls("typing"))
    await passes(60)
    assert len(made.chat.calls("typing")) == typed
    assert told(made, PROMISED) + told(made, IN_VAIN) == []


@in_virtual_time
async def test_a_session_that_ends_meanwhile_needs_no_summary() -> None:
    made = ground(SUMMARY, policy=Policy(system_prompt="Be kind.", idle_reset=30.0))
    held(made)
    process = await made.starts()
    await talks(process, 5)
    assert process.compactor.working() == (KEY,)

    await passes(60)

    assert process.compactor.working() == ()
    assert (await process.state()).session is None
    assert told(made, PROMISED) + told(made, IN_VAIN) == []
    assert await made.store.abandoned(made.clock.now(), 9, frozenset({"chat"})) == ()


@in_virtual_time
async def test_what_does_not_fit_the_summing_model_is_taken_in_pieces() -> None:
    made = ground()
    made.summarizer = small = Talker(window=1_000)
    small.overheard = lambda request: ModelReply(text=SUMMARY)
    process = await made.starts()

    await talks(process, 5, "字" * 450)

    assert len(small.requests) > 1
    assert all("called Anna" in shown(request) for request in small.requests[1:])
    assert "\n".join(map(shown, small.requests)).count("字" * 400) >= 2
    assert len(told(made, PROMISED)) == 1


@in_virtual_time
async def test_a_piece_that_is_larger_than_it_looked_is_halved() -> None:
    made = ground()
    made.summarizer = dense = Talker(window=2_200, density=3)
    dense.overheard = lambda request: ModelReply(text=SUMMARY)
    process = await made.starts()

    await talks(process, 5)

    assert len(dense.requests) > 1
    assert len(told(made, PROMISED)) == 1


@in_virtual_time
async def test_a_window_that_nobody_knew_is_found_out() -> None:
    made = ground()
    limit = 3_200

    def takes(request: ModelRequest) -> ModelReply | ModelFailure:
        fits = len(shown(request)) <= limit
        return ModelReply(text=SUMMARY) if fits else ModelFailure(kind="too_long", detail="413")

    made.summarizer = unknown = ScriptedModel(*[takes] * 9)
    process = await made.starts()

    await talks(process, 5)

    assert len(told(made, PROMISED)) == 1
    said = "\n".join(shown(r) for r in unknown.requests if len(shown(r)) <= limit)
    assert [said.index(f"{n}: word") for n in range(2)] == sorted(
        said.index(f"{n}: word") for n in range(2)
    )
    assert said.index("0: word") < said.index("I see")


@in_virtual_time
async def test_a_secret_does_not_live_on_in_a_summary() -> None:
    key = "sk-" + "proj-" + "a1" * 20
    made = ground(f"## Keep verbatim\n- the key is {key}")
    process = await made.starts()

    await talks(process, 5, f"{key} {LONG}")

    assert key not in shown(asked(made)[0])
    (compacted,) = await happened(made, Compacted)
    assert isinstance(compacted, Compacted)
    assert key not in compacted.summary


@in_virtual_time
async def test_facts_outlive_all_summaries_that_forget_them() -> None:
    made = ground(SUMMARY, *["## Goal\n- go on"] * 200)
    process = await made.starts()

    await talks(process, 100)

    assert len(await happened(made, Compacted)) >= 20
    assert len(await happened(made, CompactionFailed)) == 0
    assert "called Anna" in shown(made.script.requests[-1])


@in_virtual_time
async def test_each_attempt_is_counted_before_the_model_is_asked() -> None:
    made = ground(SUMMARY)
    held(made)
    process = await made.starts()
    await talks(process, 5)

    (attempted,) = await happened(made, CompactionAttempted)

    assert attempted == CompactionAttempted(attempt=1)
    assert len(asked(made)) == 1
