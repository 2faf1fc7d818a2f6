"""Summaries that fail, hang or are broken off, by the real runtime on virtual time."""

from typing import Any

import pytest
from msgspec.structs import replace

from core.domain.events import (
    Compacted,
    CompactionFailed,
    CompactionStarted,
)
from core.domain.messages import (
    ModelFailure,
    ModelReply,
    ModelRequest,
    RequestSize,
)
from core.domain.policy import Policy
from core.errors import UnstorableError
from core.models.scripted import ScriptedModel
from core.ports import Commit, OnText
from core.runtime.compactor import LONGEST, SECONDS
from storage.memory import MemoryStore
from tests.core.domain.samples import HOME
from tests.core.runtime.house import KEY, LEASE, asks, passes
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
    assert answers(made) == 4


@pytest.mark.parametrize("summary", BAD.values(), ids=BAD.keys())
@in_virtual_time
async def test_a_turn_is_answered_without_a_summary_where_it_fits(summary: Any) -> None:
    made = ground(summary)

    await too_long(made)
    await passes(5)

    assert answers(made) == 4
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
    assert answers(made) == 3
    await passes(20)

    assert answers(made) == 4
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
    assert answers(made) == 4
    assert len(told(made, IN_VAIN)) == 1


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

    assert answers(made) == 4
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
async def test_one_that_kills_three_times_is_given_up_and_the_turn_is_answered() -> None:
    made = ground()
    held(made)
    process = await too_long(made)

    for _ in range(4):
        process.dies()
        await passes(LEASE)
        process = await made.starts()
        await passes(5)
    await passes(120)

    assert len(asked(made)) == 3
    failed = await happened(made, CompactionFailed)
    assert [event.reason for event in failed if isinstance(event, CompactionFailed)] == [
        "no_progress"
    ]
    assert len(told(made, IN_VAIN)) == 1
    assert answers(made) == 4


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
    assert answers(made) == 4


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
async def test_a_process_that_stops_begins_none() -> None:
    made = ground(SUMMARY)
    made.tools["look"].seconds, made.tools["book"].seconds = 5, 15
    process = await made.starts()
    await talks(process, 3)
    talker = made.script
    assert isinstance(talker, Talker)
    script = iter([asks("look"), asks("book")])
    talker.overheard = lambda request: next(script, None)
    await process.hears(f"3: {LONG}")
    await passes(1)
    await process.hears("and I?", user="8", address=replace(HOME, chat="8"))
    await passes(1)

    await process.stops(drain=20)
    assert answers(made) == 5
    await passes(30)
    assert asked(made) == []

    await made.starts()
    await passes(5)
    assert len(told(made, PROMISED)) == 1


class Picky(MemoryStore):
    """Never takes a snowman."""

    async def commit(self, commit: Commit) -> int:
        if "\u2603" in str(commit.log):
            raise UnstorableError("value too cold for column")
        return await super().commit(commit)


@in_virtual_time
async def test_a_summary_that_can_never_be_stored_has_failed() -> None:
    made = ground("## Goal\n- a snowman: \u2603")
    made.store = Picky()

    await too_long(made)
    await passes(5)

    assert answers(made) == 4
    assert len(told(made, IN_VAIN)) == 1


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
async def test_what_no_database_takes_is_made_harmless() -> None:
    made = ground("## Goal\n- a\0b \ud83d c")
    process = await made.starts()

    await talks(process, 5)

    (compacted,) = await happened(made, Compacted)
    assert isinstance(compacted, Compacted)
    assert compacted.summary.encode()
    assert "\0" not in compacted.summary
