"""A conversation whose older part is summed up, by the real runtime on virtual time."""

from collections.abc import Callable
from typing import Any

import pytest

from core.domain.events import (
    Compacted,
    CompactionAttempted,
    CompactionFailed,
    CompactionStarted,
    Event,
)
from core.domain.messages import (
    ModelFailure,
    ModelReply,
    ModelRequest,
    RequestSize,
    Usage,
    UserMessage,
)
from core.domain.policy import Policy
from core.models.scripted import ScriptedModel
from core.ports import OnText
from core.runtime.compactor import LONGEST, SECONDS
from tests.core.runtime.house import KEY, LEASE, Ground, Process, asks, passes
from tests.core.runtime.virtual import in_virtual_time

WINDOW = 2_000
SUMMARY = "## Facts and preferences\n- called Anna\n\n## Open\n- the trip"
PROMISED = "I have summed up"
IN_VAIN = "I wanted to sum up"
LONG = "word " * 300
"""About a fifth of the window."""


class Talker(ScriptedModel):
    """Answers whatever it is asked, takes no more than a window, and counts as the state does."""

    def __init__(self, window: int = WINDOW) -> None:
        super().__init__(name="talker")
        self.window = window
        self.overheard: Callable[[ModelRequest], ModelReply | None] = lambda request: None

    async def measure(self, request: ModelRequest) -> RequestSize:
        return RequestSize(counted=tokens(request), window=self.window)

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply | ModelFailure:
        self.requests.append(request)
        assert tokens(request) <= self.window
        return self.overheard(request) or ModelReply(text="I see", model="talker")


def tokens(request: ModelRequest) -> int:
    return sum(len(message.text.encode()) for message in request.messages) // 4


def shown(request: ModelRequest) -> str:
    return "\n".join(m.text for m in request.messages if isinstance(m, UserMessage))


def ground(*summaries: Any, policy: Policy | None = None) -> Ground:
    made = Ground(policy=policy or Policy(system_prompt="Be kind."))
    made.model = Talker()
    made.summarizer = ScriptedModel(*summaries, name="summarizer")
    return made


def asked(made: Ground) -> list[ModelRequest]:
    assert isinstance(made.summarizer, ScriptedModel)
    return made.summarizer.requests


def held(made: Ground) -> ScriptedModel:
    """The summing model, which hangs until it is released."""
    assert isinstance(made.summarizer, ScriptedModel)
    made.summarizer.hold()
    return made.summarizer


async def talks(process: Process, times: int, text: str = LONG) -> None:
    for number in range(times):
        await process.hears(f"{number}: {text}")
        await passes(5)


async def log_of(made: Ground) -> list[Event]:
    return [recorded.event for recorded in await made.store.events(KEY)]


async def happened(made: Ground, *kinds: type[Event]) -> list[Event]:
    return [event for event in await log_of(made) if isinstance(event, kinds)]


def told(made: Ground, words: str) -> list[str]:
    return [text for text in made.chat.texts if words in text]


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

    assert made.chat.texts.count("I see") == 6
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


async def too_long(made: Ground) -> Process:
    """A turn that does not fit with what was said before it: it waits for the summary."""
    process = await made.starts()
    await talks(process, 3)
    await process.hears("huge: " + LONG * 3)
    await passes(1)
    return process


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

    assert made.chat.texts.count("I see") == 4
    assert "called Anna" in shown(made.script.requests[-1])
    typed = len(made.chat.calls("typing"))
    await passes(60)
    assert len(made.chat.calls("typing")) == typed
    assert process.working() == ()


BAD: dict[str, Any] = {
    "fails": ModelFailure(kind="try_again", detail="503"),
    "is refused": ModelFailure(kind="refused", detail="400"),
    "is not configured": ModelFailure(kind="never", detail="401 no such key"),
    "says nothing": "",
    "says blanks": " \n\n ",
    "says headings only": "## Goal\n\n## Open\n",
    "says more than it got": "more and more " * 3_000,
}


@pytest.mark.parametrize("summary", BAD.values(), ids=BAD.keys())
@in_virtual_time
async def test_without_a_summary_all_stays_as_it_was(summary: Any) -> None:
    made = ground(summary, policy=Policy(system_prompt="Be kind.", compact_at=0.6))
    process = await made.starts()

    await talks(process, 4)

    assert len(told(made, IN_VAIN)) == 1
    assert await happened(made, Compacted) == []
    state = await process.state()
    assert state.session.compaction is None
    assert {entry.turn for entry in state.session.entries} == {1, 2, 3, 4}
    assert made.chat.texts.count("I see") == 4


@pytest.mark.parametrize("summary", BAD.values(), ids=BAD.keys())
@in_virtual_time
async def test_a_turn_is_answered_without_a_summary_where_it_fits(summary: Any) -> None:
    made = ground(summary)

    await too_long(made)
    await passes(5)

    assert made.chat.texts.count("I see") == 4
    assert len(told(made, IN_VAIN)) == 1
    assert "huge" in shown(made.script.requests[-1])
    assert len(await happened(made, CompactionStarted)) == 1
    assert await made.outcomes() == {"answered": 4}


@in_virtual_time
async def test_a_summary_that_hangs_is_waited_for_no_longer_than_it_is_worth() -> None:
    made = ground()
    held(made)
    await too_long(made)

    await passes(SECONDS - 10)
    assert made.chat.texts.count("I see") == 3
    await passes(20)

    assert made.chat.texts.count("I see") == 4
    assert len(told(made, IN_VAIN)) == 1


class Slow(ScriptedModel):
    """Needs almost all of its time for each piece."""

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        self.requests.append(request)
        await passes(SECONDS - 1)
        return ModelReply(text=SUMMARY)


@in_virtual_time
async def test_many_pieces_have_a_time_that_they_do_not_exceed_together() -> None:
    made = ground()
    made.summarizer = slow = Slow()
    slow.size = lambda request: RequestSize(counted=1, window=120)
    await too_long(made)

    await passes(LONGEST + 10)

    assert len(slow.requests) == LONGEST // SECONDS + 1
    assert made.chat.texts.count("I see") == 4
    assert len(told(made, IN_VAIN)) == 1


@in_virtual_time
async def test_one_turn_asks_for_one_summary_whatever_comes_of_it() -> None:
    made = ground(*[ModelFailure(kind="try_again", detail="503")] * 3)
    process = await made.starts()
    talker = made.script
    assert isinstance(talker, Talker)
    talker.overheard = lambda request: (
        asks("look", text=LONG) if len(request.messages) < 9 else None
    )

    await process.hears("do it")
    await passes(30)

    assert len(await happened(made, CompactionStarted)) <= 1
    assert await process.state()


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
async def test_it_survives_the_death_of_its_process() -> None:
    made = ground(*[SUMMARY] * 2)
    summarizer = held(made)
    first = await too_long(made)
    first.dies()
    summarizer.release()
    await passes(LEASE)

    await made.starts()
    await passes(5)

    assert made.chat.texts.count("I see") == 4
    assert len(told(made, PROMISED)) == 1
    assert len(asked(made)) == 2


@in_virtual_time
async def test_in_the_background_it_survives_too_and_nobody_has_to_write_for_that() -> None:
    made = ground(*[SUMMARY] * 2)
    summarizer = held(made)
    first = await made.starts()
    await talks(first, 5)
    first.dies()
    summarizer.release()
    await passes(LEASE)

    await made.starts()
    await passes(5)

    assert len(told(made, PROMISED)) == 1


@in_virtual_time
async def test_one_that_kills_twice_is_given_up_and_the_turn_is_answered() -> None:
    made = ground()
    held(made)
    process = await too_long(made)

    for _ in range(3):
        process.dies()
        await passes(LEASE)
        process = await made.starts()
        await passes(5)

    assert len(asked(made)) == 2
    failed = await happened(made, CompactionFailed)
    assert [event.reason for event in failed if isinstance(event, CompactionFailed)] == [
        "no_progress"
    ]
    assert len(told(made, IN_VAIN)) == 1
    assert made.chat.texts.count("I see") == 4


@in_virtual_time
async def test_clean_stops_are_no_attempts() -> None:
    made = ground(SUMMARY)
    summarizer = held(made)
    process = await too_long(made)
    for _ in range(4):
        await process.stops(drain=1)
        process = await made.starts()
        await passes(5)
    summarizer.release()
    await passes(60)

    assert len(told(made, PROMISED)) == 1
    assert made.chat.texts.count("I see") == 4


@in_virtual_time
async def test_a_stop_lets_it_finish() -> None:
    made = ground(SUMMARY)
    summarizer = held(made)
    process = await made.starts()
    await talks(process, 5)

    stopping = passes(5)
    summarizer.release()
    await process.stops(drain=20)
    await stopping

    assert len(told(made, PROMISED)) == 1
    assert len(await happened(made, Compacted)) == 1


@in_virtual_time
async def test_a_database_that_is_away_is_waited_for() -> None:
    made = ground(SUMMARY)
    summarizer = held(made)
    process = await made.starts()
    await talks(process, 5)
    process.disk.faults.extend(["before"] * 3)
    summarizer.release()
    await passes(1)
    assert told(made, PROMISED) == []

    await passes(20)

    assert len(told(made, PROMISED)) == 1
    assert len(asked(made)) == 1


@in_virtual_time
async def test_who_loses_the_session_stops_summing_it_up() -> None:
    made = ground(*[SUMMARY] * 2)
    summarizer = held(made)
    first = await made.starts()
    await talks(first, 5)
    first.forgets_to_renew()
    await passes(2 * LEASE)
    second = await made.starts()
    await passes(1)
    assert second.compactor.working() == (KEY,)

    await first.jobs.renew_leases()
    await passes(1)
    assert first.compactor.working() == ()
    summarizer.release()
    await passes(5)

    assert len(await happened(made, Compacted)) == 1
    assert len(told(made, PROMISED)) == 1


@in_virtual_time
async def test_a_session_is_not_idle_while_it_is_summed_up() -> None:
    made = ground(SUMMARY, policy=Policy(system_prompt="Be kind.", idle_reset=30.0))
    summarizer = held(made)
    process = await made.starts()
    await talks(process, 5)
    await passes(60)
    before = await process.state()
    assert before.session is not None

    summarizer.release()
    await passes(5)

    assert len(told(made, PROMISED)) == 1
    assert (await process.state()).session is None


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
    assert "0: word" in said
    assert "I see" in said


@in_virtual_time
async def test_what_no_database_takes_is_made_harmless() -> None:
    made = ground("## Goal\n- a\0b \ud83d c")
    process = await made.starts()

    await talks(process, 5)

    (compacted,) = await happened(made, Compacted)
    assert isinstance(compacted, Compacted)
    assert compacted.summary.encode()
    assert "\0" not in compacted.summary


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
async def test_facts_outlive_a_hundred_summaries_that_forget_them() -> None:
    made = ground(SUMMARY, *["## Goal\n- go on"] * 200)
    process = await made.starts()

    await talks(process, 300)

    assert len(await happened(made, Compacted)) >= 50
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
