"""What every store promises of logs, inbox, leases, timers and facts."""

import asyncio
import math
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from core.domain.events import ToolFinished
from core.domain.keys import aside_key
from core.domain.ledger import Ledger
from core.domain.messages import Usage
from core.errors import (
    BrokenDataError,
    ConflictError,
    DuplicateError,
    IllegalEventError,
    LeaseLostError,
    StorageError,
)
from core.ports import AccessGrant, Artifact, Commit, Store, StreamInfo, Timer
from tests.contract.values import (
    KEY,
    OTHER,
    at,
    commit,
    lease,
    letter,
    loaded,
    log,
    opened,
    put_aside,
    said,
    state,
    update,
)


async def test_an_unknown_key_is_empty(store: Store) -> None:
    assert await loaded(store, KEY) == (None, ())
    assert await store.events(KEY) == ()


async def test_what_was_committed_is_loaded_just_as_it_was(store: Store) -> None:
    first = log(1, opened(), said("«ü» 🙂 \u2028"))
    await store.commit(Commit(key=KEY, expected_seq=0, at=at(), log=first))
    await store.commit(commit(KEY, 2, said("more")))
    assert await loaded(store, KEY) == (None, (*first, *log(3, said("more"))))


async def test_keys_are_apart(store: Store) -> None:
    await store.commit(commit(KEY, 0, said("mine")))
    await store.commit(commit(OTHER, 0, said("yours")))
    assert await store.events(KEY) == log(1, said("mine"))
    assert await store.events(OTHER) == log(1, said("yours"))


async def test_events_can_be_read_from_anywhere_to_anywhere(store: Store) -> None:
    everything = log(1, *(said(str(number)) for number in range(9)))
    await store.commit(Commit(key=KEY, expected_seq=0, at=at(), log=everything))
    assert await store.events(KEY, 3, 5) == everything[2:5]
    assert await store.events(KEY, 8) == everything[7:]
    assert await store.events(KEY, 0, 1) == everything[:1]
    assert await store.events(KEY, 5, 99) == everything[4:]
    assert await store.events(KEY, 10) == ()
    assert await store.events(KEY, 5, 4) == ()


async def everything_of(store: Store) -> dict[str, Any]:
    late = at(10_000)
    return {
        "log": await loaded(store, KEY),
        "streams": await store.streams(),
        "ledger": await store.ledger(),
        "unowed": await store.unowed(),
        "backlog": await store.backlog(),
        "timers": await store.due(late),
        "grants": await store.grants(),
        "artifact": await store.artifact("a1"),
        "open": await store.abandoned(late),
    }


def full(seq: int, **changes: Any) -> Commit:
    """A commit with one of everything in it."""
    parts: dict[str, Any] = {
        "session_id": "s1",
        "open_turn": True,
        "owed": 1,
        "inbox": update(seq),
        "outbox": (letter(f"{KEY}@{seq}"),),
        "timers": (Timer(id="idle", key=KEY, kind="idle", due=at(60), data="x"),),
        "access": (AccessGrant("telegram", "7", "owner"),),
        "artifacts": (Artifact("a1", "the whole"),),
        "lease": lease(),
        "snapshot": state(KEY, seq + 1),
    }
    return commit(KEY, seq, said(), **{**parts, **changes})


async def test_a_commit_stores_all_of_it(store: Store) -> None:
    await store.commit(full(0))
    assert await everything_of(store) == {
        "log": (state(KEY, 1), ()),
        "streams": (StreamInfo(key=KEY, seq=1, session_id="s1", open_turn=True, updated_at=at()),),
        "ledger": {"telegram": Ledger(accepted=1, pending=1)},
        "unowed": (),
        "backlog": {"pending": 1},
        "timers": (Timer(id="idle", key=KEY, kind="idle", due=at(60), data="x"),),
        "grants": (AccessGrant("telegram", "7", "owner"),),
        "artifact": "the whole",
        "open": (KEY,),
    }
    assert await store.events(KEY) == log(1, said())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"expected_seq": 1}, ConflictError, id="ahead"),
        pytest.param({"expected_seq": 4, "log": log(5, said())}, ConflictError, id="far ahead"),
        pytest.param({"log": log(4, said())}, IllegalEventError, id="a gap before"),
        pytest.param({"log": (*log(3, said()), *log(5, said()))}, IllegalEventError, id="a gap"),
        pytest.param({"log": log(2, said())}, IllegalEventError, id="again"),
        pytest.param({"inbox": update(1)}, DuplicateError, id="taken before"),
        pytest.param({"lease": lease("there")}, LeaseLostError, id="someone else's"),
        pytest.param(
            {"access": (AccessGrant("telegram", "8", "owner"),)}, ConflictError, id="two owners"
        ),
    ],
)
async def test_a_commit_that_is_refused_stores_nothing(
    store: Store, changes: dict[str, Any], error: type[Exception]
) -> None:
    await store.commit(commit(KEY, 0, said(), inbox=update(1)))
    await store.commit(
        commit(
            KEY,
            1,
            said(),
            open_turn=True,
            lease=lease(),
            access=(AccessGrant("telegram", "7", "owner"),),
        )
    )
    before = await everything_of(store)
    fresh: dict[str, Any] = {"access": (), "timers": (), "artifacts": (Artifact("a1", "x"),)}
    with pytest.raises(error):
        await store.commit(full(2, **{**fresh, **changes}))
    assert await everything_of(store) == before


async def test_a_writer_that_is_behind_gets_a_conflict(store: Store) -> None:
    await store.commit(commit(KEY, 0, said("first")))
    with pytest.raises(ConflictError):
        await store.commit(commit(KEY, 0, said("second")))
    assert await store.events(KEY) == log(1, said("first"))


async def test_an_update_taken_before_is_a_duplicate_even_when_the_log_moved_on(
    store: Store,
) -> None:
    await store.commit(commit(KEY, 0, said(), inbox=update(5)))
    await store.commit(commit(KEY, 1, said()))
    with pytest.raises(DuplicateError):
        await store.commit(commit(KEY, 1, said(), inbox=update(5)))
    with pytest.raises(DuplicateError):
        await store.commit(commit(OTHER, 0, said(), inbox=update(5)))
    await store.commit(commit(KEY, 2, said(), inbox=update(5, "slack")))
    assert await loaded(store, OTHER) == (None, ())


async def test_one_bad_commit_among_many_fails_alone(store: Store) -> None:
    await store.commit(commit("k7", 0, said()))
    await store.commit(commit("x", 0, said(), inbox=update(3)))
    results = await asyncio.gather(
        *(store.commit(commit(f"k{n}", 0, said(), inbox=update(n))) for n in range(10)),
        return_exceptions=True,
    )
    assert [type(result) for result in results[3:8:4]] == [DuplicateError, ConflictError]
    assert all(isinstance(one, int) for n, one in enumerate(results) if n not in (3, 7))
    lengths = [len(await store.events(f"k{n}")) for n in range(10)]
    assert lengths == [1, 1, 1, 0, 1, 1, 1, 1, 1, 1]
    assert await store.ledger() == {"telegram": Ledger(accepted=9)}


async def test_of_many_at_one_place_exactly_one_wins(store: Store) -> None:
    results = await asyncio.gather(
        *(store.commit(commit(KEY, 0, said(str(n)))) for n in range(20)), return_exceptions=True
    )
    assert sum(isinstance(result, int) for result in results) == 1
    assert sum(isinstance(result, ConflictError) for result in results) == 19
    assert len(await store.events(KEY)) == 1


async def test_of_one_update_delivered_many_times_at_once_one_is_taken(store: Store) -> None:
    results = await asyncio.gather(
        *(store.commit(commit(f"k{n}", 0, said(), inbox=update())) for n in range(20)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, int) for result in results) == 1
    assert sum(isinstance(result, DuplicateError) for result in results) == 19


async def test_commits_of_one_key_may_be_under_way_together(store: Store) -> None:
    await asyncio.gather(*(store.commit(commit(KEY, n, said(str(n)))) for n in range(20)))
    assert await store.events(KEY) == log(1, *(said(str(n)) for n in range(20)))


async def test_a_caller_who_goes_away_does_not_break_the_others(store: Store) -> None:
    tasks = [asyncio.create_task(store.commit(commit(f"k{n}", 0, said()))) for n in range(10)]
    await asyncio.sleep(0)
    tasks[4].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, int) for n, result in enumerate(results) if n != 4)
    assert isinstance(results[4], asyncio.CancelledError)
    seqs = {info.key: info.seq for info in await store.streams()}
    seqs.pop("k4", None)
    assert seqs == {f"k{n}": 1 for n in range(10) if n != 4}
    await store.commit(commit("after", 0, said()))


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.close()
    await store.close()
    with pytest.raises(StorageError):
        await store.commit(commit(KEY, 0, said()))
    with pytest.raises(StorageError):
        await store.load(KEY)
    with pytest.raises(StorageError):
        await store.claim(at(), lease())


async def test_a_snapshot_saves_reading_and_loses_nothing(store: Store) -> None:
    await store.commit(commit(KEY, 0, said("a"), said("b"), snapshot=state(KEY, 2)))
    await store.commit(commit(KEY, 2, said("c")))
    assert await loaded(store, KEY) == (state(KEY, 2), log(3, said("c")))
    assert await store.events(KEY) == log(1, said("a"), said("b"), said("c"))
    await store.commit(commit(KEY, 3, said("d"), snapshot=state(KEY, 4)))
    assert await loaded(store, KEY) == (state(KEY, 4), ())


async def test_a_snapshot_of_another_place_is_passed_over(store: Store) -> None:
    await store.commit(commit(KEY, 0, said("a"), snapshot=state(KEY, 7)))
    await store.commit(commit(OTHER, 0, said("a"), snapshot=state(KEY, 1)))
    assert await loaded(store, KEY) == (None, log(1, said("a")))
    assert await loaded(store, OTHER) == (None, log(1, said("a")))


NASTY = {
    "NUL": ("a\0b", "a\ufffdb"),
    "lone surrogate": ("a\ud83db", "a\ufffdb"),
    "surrogate pair": ("a\ud83d\ude42b", "a🙂b"),
    "backslash": ("a\\u0000b", "a\\u0000b"),
    "large": ("x" * 3_000_000, "x" * 3_000_000),
}


@pytest.mark.parametrize("text,stored", NASTY.values(), ids=NASTY.keys())
async def test_every_text_can_be_stored(store: Store, text: str, stored: str) -> None:
    artifact = (Artifact("a1", text),)
    await store.commit(commit(KEY, 0, said(text), artifacts=artifact, inbox=update()))
    await store.set_fact("name", text)
    assert await store.events(KEY) == log(1, said(stored))
    assert await store.artifact("a1") == stored
    assert await store.fact("name") == stored


async def test_numbers_that_json_lacks_are_stored_as_nought(store: Store) -> None:
    broken = replace(said(), usage=Usage(1, 2, math.nan))
    await store.commit(commit(KEY, 0, broken))
    assert await store.events(KEY) == log(1, replace(said(), usage=Usage(1, 2, 0.0)))


@pytest.mark.parametrize("wrong", ["three", object(), 1.5, None])
async def test_an_event_that_could_not_be_read_back_is_refused(store: Store, wrong: Any) -> None:
    event = ToolFinished(turn=wrong, step=1, call_id="c", outcome="ok", text="")
    with pytest.raises(IllegalEventError):
        await store.commit(commit(KEY, 0, event))
    assert await loaded(store, KEY) == (None, ())


async def test_streams_are_listed_newest_first(store: Store) -> None:
    for number, key in enumerate(("agent:a:1", "agent:b:1", "agent:a:2", "AGENT:a:3")):
        await store.commit(commit(key, 0, said(), at=at(number)))
    await store.commit(commit("agent:a:1", 1, said(), at=at(9)))
    assert [info.key for info in await store.streams("agent:a:")] == ["agent:a:1", "agent:a:2"]
    assert [info.key for info in await store.streams(limit=2)] == ["agent:a:1", "AGENT:a:3"]
    assert (await store.streams("agent:b:"))[0].updated_at - at(1) == timedelta(0)


async def test_just_these_events_are_read_and_none_may_be_missing(store: Store) -> None:
    everything = log(1, *(said(str(number)) for number in range(300)))
    await store.commit(Commit(key=KEY, expected_seq=0, at=at(), log=everything))
    await store.commit(commit(OTHER, 0, said("yours")))
    assert await store.bodies(KEY, (9, 2, 2, 300)) == (everything[1], everything[8], everything[-1])
    assert await store.bodies(KEY, tuple(range(1, 301))) == everything
    assert await store.bodies(KEY, ()) == ()
    with pytest.raises(BrokenDataError, match="@301"):
        await store.bodies(KEY, (1, 301))


def other_timer() -> Timer:
    return Timer(id="other", key=OTHER, kind="reminder", due=at(1))


async def test_a_log_that_is_set_aside_is_kept_and_its_key_is_new_again(store: Store) -> None:
    broken = log(1, opened(), said("old"))
    await store.commit(full(0, log=broken, snapshot=state(KEY, 2)))
    await store.commit(commit(OTHER, 0, said(), inbox=update(9), owed=1, timers=(other_timer(),)))
    assert await store.asides() == ()
    kept_as = await put_aside(store, KEY, at(5))
    assert await store.asides() == (kept_as,)
    assert kept_as not in (KEY, OTHER)
    assert await loaded(store, kept_as) == (None, broken)
    assert await loaded(store, KEY) == (None, ())
    assert await store.abandoned(at(999)) == ()
    assert [one.id for one in await store.due(at(999))] == ["other"]
    assert await store.ledger() == {"telegram": Ledger(accepted=2, failed=1, pending=1)}
    again = letter(f"{KEY}@0", "8")
    await store.commit(commit(KEY, 0, said("new"), outbox=(again,), lease=lease("there")))
    assert await store.events(KEY) == log(1, said("new"))
    claims = await store.claim(at(), lease())
    assert [one.message.part.plain for one in claims] == [f"{KEY}@0", f"{KEY}@0"]
    for one in claims:
        await store.sent(one, "1", at())
    assert await store.backlog() == {}


async def test_what_follows_a_log_that_is_set_aside_is_there_with_it_or_neither(
    store: Store,
) -> None:
    await store.commit(commit(KEY, 0, said("old"), owed=1, inbox=update()))
    with pytest.raises(ConflictError):
        await put_aside(store, KEY, at(5), commit(KEY, 1, said("cannot follow")))
    assert await store.events(KEY) == log(1, said("old"))
    assert await store.ledger() == {"telegram": Ledger(accepted=1, pending=1)}

    notice = commit(KEY, 0, said("put aside"), outbox=(letter("notice"),))
    kept_as = await put_aside(store, KEY, at(6), notice)
    assert kept_as == aside_key(KEY, at(6))
    assert await store.events(kept_as) == log(1, said("old"))
    assert await store.events(KEY) == log(1, said("put aside"))
    assert [one.message.id for one in await store.claim(at(9), lease())] == ["notice"]
    await store.commit(commit(KEY, 1, said("new")))


async def test_a_message_set_aside_still_finds_its_preview(store: Store) -> None:
    preview = letter("p", kind="preview")
    _, opened = await store.open_preview(preview, lease(), at())
    assert opened
    await store.sent(opened, "77", at())
    await store.commit(commit(KEY, 0, said(), outbox=(letter("a", edits="p"),)))
    await put_aside(store, KEY, at())
    (claimed,) = await store.claim(at(), lease())
    assert claimed.preview_id == "77"
    await store.sent(claimed, "78", at())
    state, again = await store.open_preview(preview, lease(), at())
    assert state == "opened"
    assert again
    assert again.position != opened.position


async def test_a_message_whose_session_is_set_aside_while_it_is_sent_is_settled(
    store: Store,
) -> None:
    promised = (letter("a"), letter("b", "8"), letter("c", "9"))
    await store.commit(commit(KEY, 0, said(), outbox=promised))
    a, b, c = await store.claim(at(), lease())
    await put_aside(store, KEY, at())
    await store.sent(a, "77", at())
    await store.give_up(b, "blocked", at())
    await store.retry(c, at(9), "429")
    assert await store.backlog() == {"failed": 1, "pending": 1}


async def test_only_the_log_that_was_judged_is_set_aside(store: Store) -> None:
    judged = await store.commit(commit(KEY, 0, said("old")))
    await store.set_aside(KEY, judged, at(1), commit(KEY, 0, said("new"), stream=0))
    with pytest.raises(ConflictError):
        await store.set_aside(KEY, judged, at(2))
    with pytest.raises(ConflictError):
        await store.set_aside(OTHER, judged, at(2))
    assert await store.events(KEY) == log(1, said("new"))
    assert {info.key for info in await store.streams()} == {KEY, aside_key(KEY, at(1))}


async def test_a_commit_fits_no_other_log_of_the_key_however_long(store: Store) -> None:
    old = await store.commit(commit(KEY, 0, said(), stream=0))
    assert await store.commit(commit(KEY, 1, said(), stream=old)) == old
    await put_aside(store, KEY, at(1), commit(KEY, 0, said("new"), said("too"), stream=0))
    with pytest.raises(ConflictError):
        await store.commit(commit(KEY, 2, said("from another past"), stream=old))
    with pytest.raises(ConflictError):
        await store.commit(commit(KEY, 2, said("from none"), stream=0))
    stored = await store.load(KEY)
    assert [one.event for one in stored.log] == [said("new"), said("too")]
    assert stored.stream not in (0, old)
    await store.commit(commit(KEY, 2, said("more"), stream=stored.stream))
