"""What every store promises of messages that are to be sent."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from core.domain.messages import OutboxMessage, Part
from core.ports import Claimed, Store
from tests.contract.values import KEY, at, commit, lease, letter, said


async def put(store: Store, *messages: OutboxMessage) -> None:
    found = await store.streams()
    seq = next((info.seq for info in found if info.key == KEY), 0)
    await store.commit(commit(KEY, seq, said(), outbox=messages))


async def claims(store: Store, now: float = 0) -> dict[str, Claimed]:
    found = await store.claim(at(now), lease(until=now + 30))
    return {one.message.id: one for one in found}


async def names(store: Store, now: float = 0) -> list[str]:
    return list(await claims(store, now))


async def opens(store: Store, preview: OutboxMessage, until: float = 30) -> Claimed:
    state, row = await store.open_preview(preview, lease(until=until), at())
    assert state == "opened"
    assert row is not None
    return row


SETTLEMENTS: dict[str, Callable[[Store, Claimed], Awaitable[None]]] = {
    "sent": lambda store, row: store.sent(row, "1", at(1)),
    "pending": lambda store, row: store.retry(row, at(1), "out of reach"),
    "failed": lambda store, row: store.give_up(row, "blocked", at(1)),
    "unknown": lambda store, row: store.unknown(row, "the connection broke"),
}


@pytest.mark.parametrize("state", SETTLEMENTS)
async def test_many_are_settled_at_once(store: Store, state: str) -> None:
    """As when a platform is out of reach for all its chats."""
    await put(store, *(letter(f"a{n}", chat=str(n)) for n in range(5)))
    rows = (await claims(store)).values()
    await asyncio.gather(*(SETTLEMENTS[state](store, row) for row in rows))
    assert await store.backlog() == ({} if state == "sent" else {state: 5})


PREVIEW = letter("p", kind="preview")
LOST, HELD = ("lost", None), ("held", None)


async def test_a_claimed_row_is_the_message_as_it_was_promised(store: Store) -> None:
    await put(store, letter("a"))
    (claimed,) = await store.claim(at(), lease())
    assert claimed == Claimed(
        message=letter("a"), position=claimed.position, attempts=1, created_at=at()
    )
    assert await store.claim(at(), lease()) == ()


async def test_lanes_go_side_by_side_and_each_in_its_order(store: Store) -> None:
    await put(store, letter("a1", "a"), letter("b1", "b"), letter("a2", "a"))
    await put(store, letter("c1", "c"), letter("b2", "b"))
    claimed = await claims(store)
    assert list(claimed) == ["a1", "b1", "c1"]
    assert await names(store) == []
    await store.sent(claimed["b1"], "77", at())
    await store.give_up(claimed["a1"], "blocked", at())
    assert await names(store) == ["a2", "b2"]


async def test_no_more_are_claimed_than_asked_for(store: Store) -> None:
    await put(store, *(letter(f"m{n}", f"chat{n}") for n in range(5)))
    assert [one.message.id for one in await store.claim(at(), lease(), limit=2)] == ["m0", "m1"]
    assert await names(store) == ["m2", "m3", "m4"]


async def test_what_is_put_off_holds_up_its_lane_until_then(store: Store) -> None:
    await put(store, letter("a1", "a"), letter("a2", "a"))
    await store.retry((await claims(store))["a1"], at(5), "429")
    assert await names(store, 4.9) == []
    (claimed,) = await store.claim(at(5), lease(until=60))
    assert (claimed.message.id, claimed.attempts) == ("a1", 2)


async def test_what_is_unknown_holds_up_its_lane_until_it_is_settled(store: Store) -> None:
    await put(store, letter("a1", "a"), letter("a2", "a"))
    claimed = (await claims(store))["a1"]
    await store.unknown(claimed, "the connection broke")
    assert await names(store) == []
    assert await store.unsettled(at()) == (replace(claimed, doubts=1),)
    await store.sent(claimed, "77", at())
    assert await store.unsettled(at()) == ()
    assert await names(store) == ["a2"]


async def test_it_is_counted_how_often_an_outcome_was_unknown(store: Store) -> None:
    await put(store, letter("a"))
    await store.unknown((await claims(store))["a"], "the connection broke")
    (first,) = await store.unsettled(at())
    await store.retry(first, at(), "sent again")
    await store.retry((await claims(store))["a"], at(), "429")
    again = (await claims(store))["a"]
    assert (first.doubts, again.attempts, again.doubts) == (1, 3, 1)
    (second,) = await store.unsettled(at(30))
    assert second.doubts == 2


async def test_a_claim_whose_owner_died_becomes_unknown(store: Store) -> None:
    await put(store, letter("a", "a"), letter("b", "b"))
    await store.claim(at(), lease(until=30), limit=1)
    await store.claim(at(), lease(until=40))
    assert await store.unsettled(at(29.9)) == ()
    (doubtful,) = await store.unsettled(at(30))
    assert doubtful.message.id == "a"
    assert [one.message.id for one in await store.unsettled(at(40))] == ["a", "b"]
    assert [one.message.id for one in await store.unsettled(at(40), limit=1)] == ["a"]
    await store.retry(doubtful, at(40), "sent again")
    assert await names(store, 40) == ["a"]


async def test_a_message_that_is_out_never_comes_back(store: Store) -> None:
    await put(store, letter("a"))
    claimed = (await claims(store))["a"]
    await store.sent(claimed, "77", at())
    await store.retry(claimed, at(), "late")
    await store.unknown(claimed, "late")
    await store.give_up(claimed, "late", at())
    assert await names(store) == []
    assert await store.unsettled(at(99)) == ()
    assert await store.backlog() == {}


async def test_of_many_claimers_no_two_get_the_same_row(store: Store) -> None:
    await put(store, *(letter(f"m{n}", f"chat{n}") for n in range(40)))
    all_claims = await asyncio.gather(
        *(store.claim(at(), lease(f"owner{n}"), limit=10) for n in range(8))
    )
    claimed = [one.message.id for claim in all_claims for one in claim]
    assert sorted(claimed) == sorted(f"m{n}" for n in range(40))


async def test_the_backlog_counts_what_is_not_sent(store: Store) -> None:
    await put(store, *(letter(f"m{n}", f"chat{n}") for n in range(6)))
    m0, m1, m2, m3, _ = await store.claim(at(), lease(), limit=5)
    await store.sent(m0, "70", at())
    await store.give_up(m1, "blocked", at())
    await store.unknown(m2, "broken")
    await store.retry(m3, at(9), "429")
    await store.open_preview(letter("p", "chat9", kind="preview"), lease(), at())
    assert await store.backlog() == {"failed": 1, "unknown": 1, "pending": 2, "sending": 1}


async def test_a_preview_is_opened_once_and_its_message_found_again(store: Store) -> None:
    opened = await opens(store, PREVIEW)
    await store.sent(opened, "77", at())
    shown = replace(opened, preview_id="77")
    assert await store.open_preview(PREVIEW, lease("there"), at()) == ("sent", shown)
    await put(store, letter("a", edits="p"))
    (claimed,) = await store.claim(at(), lease())
    assert (claimed.message, claimed.preview_id) == (letter("a", edits="p"), "77")


async def test_a_preview_holds_up_its_lane_until_it_is_known_whether_it_arrived(
    store: Store,
) -> None:
    opened = await opens(store, PREVIEW)
    await put(store, letter("a", edits="p"))
    assert await names(store) == []
    await store.unknown(opened, "the connection broke")
    assert await store.open_preview(PREVIEW, lease(), at()) == LOST
    assert await names(store) == []
    (doubtful,) = await store.unsettled(at(1))
    assert doubtful.message == replace(PREVIEW, part=Part(text="", plain=""))
    await store.give_up(doubtful, "it did not arrive", at(1))
    (claimed,) = await store.claim(at(), lease())
    assert (claimed.message.id, claimed.preview_id) == ("a", "")


async def test_a_preview_whose_sender_died_and_that_arrived_is_edited(store: Store) -> None:
    await opens(store, PREVIEW)
    await put(store, letter("a", edits="p"))
    (doubtful,) = await store.unsettled(at(30))
    assert await store.open_preview(PREVIEW, lease(), at()) == LOST
    await store.sent(doubtful, "77", at(30))
    (claimed,) = await store.claim(at(30), lease())
    assert (claimed.message.id, claimed.preview_id) == ("a", "77")


async def test_a_preview_of_which_nobody_knows_what_it_shows_is_lost(store: Store) -> None:
    opened = await opens(store, PREVIEW)
    await store.sent(opened, "77", at())
    await store.unknown(opened, "an edit was cut short")
    assert await store.open_preview(PREVIEW, lease(), at()) == LOST
    await put(store, letter("a", edits="p"))
    (claimed,) = await store.claim(at(), lease())
    assert claimed.preview_id == "", "the answer is a message of its own"


async def test_a_preview_that_failed_is_lost(store: Store) -> None:
    await store.give_up(await opens(store, PREVIEW), "blocked", at())
    assert await store.open_preview(PREVIEW, lease(), at()) == LOST


async def test_a_preview_that_was_proved_not_to_be_out_is_opened_anew(store: Store) -> None:
    first = await opens(store, PREVIEW)
    await store.retry(first, at(), "429")
    await put(store, letter("a"))
    claimed = await claims(store)
    assert list(claimed) == ["a"]
    await store.sent(claimed["a"], "1", at())
    second = await opens(store, PREVIEW)
    assert (second.position, second.attempts) == (first.position, 2)
    await store.sent(second, "77", at())
    assert await store.open_preview(PREVIEW, lease(), at()) == (
        "sent",
        replace(second, preview_id="77"),
    )


async def test_what_is_said_of_an_unknown_row_is_ignored(store: Store) -> None:
    nobody = Claimed(message=letter("nobody"), position=999, attempts=1, created_at=at())
    await store.sent(nobody, "1", at())
    await store.retry(nobody, at(), "")
    await store.unknown(nobody, "")
    await store.give_up(nobody, "", at())
    assert await store.backlog() == {}


async def test_an_older_claim_settles_nothing_but_that_the_message_is_out(store: Store) -> None:
    await put(store, letter("a"))
    old = (await claims(store))["a"]
    await store.unknown(old, "the connection broke")
    await store.retry(old, at(), "sent again")
    await store.give_up(old, "late", at())
    assert await store.backlog() == {"pending": 1}
    new = (await claims(store))["a"]
    await store.retry(old, at(), "late")
    await store.unknown(old, "late")
    await store.give_up(old, "late", at())
    assert await store.backlog() == {"sending": 1}
    await store.sent(old, "77", at())
    await store.retry(new, at(), "late")
    assert await store.backlog() == {}


async def test_a_process_sees_only_the_rows_of_its_platforms(store: Store) -> None:
    here, elsewhere = frozenset({"telegram"}), frozenset({"console"})
    await put(store, letter("a"))
    assert await store.claim(at(), lease(), platforms=elsewhere) == ()
    assert await store.claim(at(), lease(), platforms=frozenset()) == ()
    (claimed,) = await store.claim(at(), lease(), platforms=here)
    assert claimed.attempts == 1
    await store.unknown(claimed, "cut")
    assert await store.unsettled(at(), platforms=elsewhere) == ()
    assert len(await store.unsettled(at(), platforms=here)) == 1


async def test_a_preview_does_not_overtake_an_older_message_of_its_lane(store: Store) -> None:
    preview = letter("p", "a", kind="preview")
    await put(store, letter("a1", "a"))
    assert await store.open_preview(preview, lease(), at()) == HELD
    claimed = await claims(store)
    assert await store.open_preview(preview, lease(), at()) == HELD
    await store.sent(claimed["a1"], "5", at())
    await opens(store, preview)


async def test_rows_that_rest_hide_no_others_in_doubt(store: Store) -> None:
    await put(store, *(letter(f"a{n}", chat=str(n)) for n in range(3)))
    rows = (await claims(store)).values()
    for row in rows:
        await store.unknown(row, "cut")
    resting = {row.position for row in rows if row.message.id != "a2"}
    (found,) = await store.unsettled(at(), limit=1, beside=resting)
    assert found.message.id == "a2"


async def test_a_preview_keeps_the_time_at_which_it_was_first_opened(store: Store) -> None:
    _, first = await store.open_preview(PREVIEW, lease(), at(3))
    assert first is not None
    await store.retry(first, at(), "no route")
    _, second = await store.open_preview(PREVIEW, lease(), at(9))
    assert second is not None
    assert (first.created_at, second.created_at) == (at(3), at(3))
