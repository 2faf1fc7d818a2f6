"""What was said while nobody listened is read from history, once, and in order."""

import asyncio
from datetime import timedelta

import pytest

from core.errors import StorageError
from tests.bots.platforms.slack.kit import (
    CHANNEL,
    MINUTE,
    Bench,
    here,
    plain,
    row,
    served,
    socketed,
)
from tests.bots.platforms.slack.life import HISTORY, REPLIES, Held, Life
from tests.standins.base import go_on
from tests.standins.faults import BAD_GATEWAY, too_many
from tests.standins.slack import SlackStandIn
from tests.standins.slack_user import User
from tests.standins.slack_world import slack_error

BROKEN = slack_error("fatal_error")


@pytest.fixture
def life(slack: SlackStandIn) -> Life:
    return Life(slack)


async def test_a_message_sent_meanwhile_is_taken_after_the_start(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    await life.lost(lambda: ada.says("two"))
    await life.lost(lambda: ada.says("three"))
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(3)
        assert life.inbox.texts == ["one", "two", "three"]
        assert life.inbox.taken[1].user_name == "Ada"


async def test_it_is_the_same_update_live_and_from_history(life: Life, ada: User) -> None:
    shared = {"attachments": [{"is_share": True, "text": "of Grace"}]}
    await life.takes_first(lambda: ada.says("one", extra=shared))
    await life.takes_first(lambda: ada.says_in(CHANNEL, "two", mention=True))
    async with socketed(life.slack, life.store, life.inbox):
        await life.slack.wait_for(lambda: len(life.inbox.offered) >= 5)
    first = {inbound.update_id: inbound for inbound in life.inbox.taken}
    assert all(offered == first[offered.update_id] for offered in life.inbox.offered)
    assert [inbound.quote for inbound in life.inbox.taken] == ["of Grace", ""]


async def test_threads_are_read_too(life: Life, ada: User) -> None:
    root = ada.says_in(CHANNEL, "before its time")
    await life.lost(lambda: ada.says_in(CHANNEL, "not to the bot", thread=root.ts))
    await life.takes_first(lambda: ada.says_in(CHANNEL, "one", thread=root.ts, mention=True))
    await life.lost(lambda: ada.says_in(CHANNEL, "two", thread=root.ts))
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(2)
        assert life.inbox.taken[0].address == life.inbox.taken[1].address
    assert life.inbox.texts == ["one", "two"]


async def test_mentions_in_a_known_channel_are_read_too(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says_in(CHANNEL, "one", mention=True))
    await life.lost(lambda: ada.says_in(CHANNEL, "not to the bot"))
    await life.lost(lambda: ada.says_in(CHANNEL, "two", mention=True))
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(2)
    assert life.inbox.texts == ["one", "two"]


async def test_a_thread_begun_meanwhile_in_private_is_read(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    root = ada.chat[0].ts
    await life.lost(lambda: ada.says("two", thread=root))
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(2)
    assert life.inbox.taken[1].address.thread == root


async def test_it_is_read_also_where_it_goes_on_before_that(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    root = ada.chat[0].ts
    await life.lost(lambda: ada.says("two", thread=root))
    page = Held(life.slack, HISTORY)
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await page.is_one()
        ada.says("three", thread=root)
        await bench.takes(2)
        page.let_go()
        await bench.takes(3)


async def test_what_was_said_before_it_was_spoken_to_is_left(life: Life, ada: User) -> None:
    root = ada.says("before its time").ts
    await life.slack.wait_for(lambda: life.slack.events.lost)
    await life.takes_first(lambda: ada.says("one"))
    page = Held(life.slack, HISTORY)
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await page.is_one()
        ada.says("two", thread=root)
        await bench.takes(2)
        page.let_go()
        await life.slack.wait_for(lambda: len(life.inbox.offered) >= 4)
    assert life.inbox.texts == ["one", "two"]


async def test_a_thread_that_a_missed_mention_opened_is_read(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says_in(CHANNEL, "one", mention=True))
    await life.lost(lambda: ada.says_in(CHANNEL, "two", mention=True))
    root = ada.sees(CHANNEL)[-1].ts
    await life.lost(lambda: ada.says_in(CHANNEL, "three", thread=root))
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(3)
    assert life.inbox.texts == ["one", "two", "three"]


async def test_all_pages_are_read_oldest_first(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("m0"))
    life.slack.events.subscribed = frozenset()
    for number in range(1, 450):
        ada.says(f"m{number}")
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(450)
    assert len(life.slack.calls_of(HISTORY)) == 3
    history = [inbound for inbound in life.inbox.taken if inbound.text != "m0"]
    assert sorted(history, key=lambda inbound: inbound.message_id) == history


async def test_failures_are_waited_for_as_long_as_slack_says(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    await life.lost(lambda: ada.says("two"))
    life.slack.faults.next(HISTORY, too_many(17), BAD_GATEWAY)
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(2)
        assert bench.pauses[:2] == [17.0, 5.0]


async def test_a_conversation_that_cannot_be_read_holds_up_no_other(life: Life, ada: User) -> None:
    bob = life.slack.user("U8", "Bob")
    await life.takes_first(lambda: ada.says("one"))
    await life.takes_first(lambda: bob.says("one of Bob's"))
    await life.lost(lambda: ada.says("two"))
    await life.lost(lambda: bob.says("two of Bob's"))
    life.slack.before = lambda call: BROKEN if call.params.get("channel") == bob.dm else None
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(3)
        assert life.inbox.texts[-1] == "two"
        life.slack.before = go_on
        await bench.takes(4)
        assert life.inbox.texts[-1] == "two of Bob's"


async def test_it_is_tried_again_later_and_later(life: Life, ada: User) -> None:
    """After ten seconds, too, which are no pause to ``pauses``."""
    await life.takes_first(lambda: ada.says("one"))
    life.slack.faults.always(HISTORY, BROKEN)
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await life.slack.wait_for(lambda: len(bench.pauses) >= 4)
    assert bench.pauses[:4] == [5.0, 20.0, 30.0, 30.0]


async def test_it_is_tried_again_after_a_stop(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    await life.lost(lambda: ada.says("two"))
    life.slack.faults.always(HISTORY, BROKEN)
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await life.slack.wait_for(lambda: len(bench.pauses) >= 2)
        await bench.adapter.stop()
        life.slack.faults.clear()
        await bench.adapter.start()
        await bench.takes(2)


async def test_a_long_history_is_read_however_seldom_slack_answers(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("m0"))
    life.slack.events.subscribed = frozenset()
    for number in range(1, 450):
        ada.says(f"m{number}")
    asked = len(life.slack.calls_of(HISTORY))
    for second in range(2, 20, 2):
        life.slack.faults.at(HISTORY, asked + second, too_many(60))
    async with socketed(life.slack, life.store, life.inbox) as bench:
        for _ in range(2):
            await life.slack.wait_for(lambda: MINUTE in bench.pauses)
            bench.clock.slept.clear()
            bench.clock.pass_a_minute()
        await bench.takes(450)


async def test_threads_that_slack_puts_off_hold_up_no_conversation(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    await life.takes_first(lambda: ada.says("in the thread", thread=ada.chat[0].ts))
    await life.lost(lambda: ada.says("two"))
    life.slack.faults.always(REPLIES, too_many(17))
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(3)
        await life.slack.wait_for(lambda: len(bench.pauses) > 1)
    assert set(bench.pauses[:2]) == {17.0}


async def test_what_is_missed_while_history_is_read_is_read_too(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    page = Held(life.slack, HISTORY)
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await page.is_one()
        await life.goes_down_for(bench, lambda: ada.says("two"))
        page.let_go()
        await bench.takes(2)


async def test_what_cannot_be_stored_while_history_is_read_is_read_too(
    life: Life, ada: User
) -> None:
    await life.takes_first(lambda: ada.says("one"))
    page = Held(life.slack, HISTORY)
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await page.is_one()
        life.inbox.failing = StorageError("disk full")
        await life.lost(lambda: ada.says("two"))
        life.inbox.failing = None
        page.let_go()
        await bench.takes(2)


async def test_what_a_refused_token_kept_from_us_is_read_with_the_next(
    life: Life, ada: User
) -> None:
    await life.takes_first(lambda: ada.says("one"))
    await life.lost(lambda: ada.says("two"))
    life.slack.faults.always(HISTORY, slack_error("token_revoked"))
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await life.slack.wait_for(lambda: life.slack.calls_of(HISTORY))
        life.slack.world.ahead = timedelta(hours=1).total_seconds()
        ada.says("three")
        await bench.takes(2)
    life.slack.faults.clear()
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(3)


async def test_a_place_that_is_kept_from_us_holds_up_no_other(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    await life.takes_first(lambda: ada.says_in(CHANNEL, "two", mention=True))
    await life.lost(lambda: ada.says("three"))
    life.slack.faults.always(REPLIES, slack_error("missing_scope"))
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(3)
        await life.slack.wait_for(lambda: len(life.slack.calls_of(REPLIES)) >= 1)
        assert bench.adapter.health().ok


async def test_it_reads_again_after_a_socket_was_lost(life: Life, ada: User) -> None:
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.is_well()
        ada.says("one")
        await bench.takes(1)
        life.slack.faults.next("apps.connections.open", *[BAD_GATEWAY] * 8)
        await life.slack.drop_sockets()
        await life.lost(lambda: ada.says("two"))
        await bench.takes(2)
    assert life.inbox.texts == ["one", "two"]


async def test_what_could_not_be_stored_is_read_when_it_can_be(life: Life, ada: User) -> None:
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.is_well()
        ada.says("one")
        await bench.takes(1)
        life.inbox.failing = StorageError("disk full")
        await life.lost(lambda: ada.says("two"))
        assert not bench.adapter.health().ok
        life.inbox.failing = None
        await bench.takes(2)


async def test_over_http_it_is_read_at_the_start(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    await life.lost(lambda: ada.says("two"))
    async with served(life.slack, life.store, life.inbox) as (bench, _):
        await bench.adapter.start()
        await bench.takes(2)


async def test_a_mark_never_runs_ahead_of_what_is_on_disk(life: Life, ada: User) -> None:
    """A kill in mid-catch-up: what came live meanwhile has moved no mark."""
    await life.takes_first(lambda: ada.says("one"))
    await life.lost(lambda: ada.says("two"))
    life.slack.faults.always(HISTORY, too_many(17))
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.is_well()
        ada.says("three")
        await bench.takes(2)
        await life.slack.wait_for(lambda: bench.clock.slept.count(10.0) > 3)
        marks = await bench.marks()
        assert marks[ada.dm] < ada.chat[1].ts
    assert (await bench.marks())[ada.dm] < ada.chat[1].ts
    life.slack.faults.clear()
    async with socketed(life.slack, life.store, life.inbox) as bench:
        await bench.takes(3)
        await life.slack.wait_for(lambda: bench.clock.slept.count(10.0) > 3)
        assert (await bench.marks())[ada.dm] == ada.chat[2].ts


async def test_a_place_is_known_before_its_first_message_is_stored(slack: SlackStandIn) -> None:
    ada, bench = slack.user("U7"), Bench(slack)
    bench.inbox.failing = StorageError("killed here")
    await bench.adapter.start()
    await bench.is_well()
    said = ada.says("one")
    await slack.wait_for(lambda: bench.inbox.offered)
    (place,) = (await bench.marks()).items()
    assert place[0] == ada.dm
    assert place[1] < said.ts
    await bench.adapter.close()


async def test_what_is_older_than_a_week_is_left(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    await life.takes_first(lambda: ada.says("one, too", thread=ada.chat[0].ts))
    await life.lost(lambda: ada.says("two"))
    life.slack.world.ahead = timedelta(days=8).total_seconds()
    bench = Bench(life.slack, life.store, life.inbox)
    asked, threads = len(life.slack.calls_of(HISTORY)), life.slack.calls_of(REPLIES)
    await bench.adapter.start()
    await life.slack.wait_for(lambda: len(life.slack.calls_of(HISTORY)) > asked)
    await asyncio.sleep(0.1)
    await bench.adapter.close()
    assert life.inbox.texts == ["one", "one, too"]
    assert life.slack.calls_of(REPLIES) == threads


async def test_a_clock_that_is_wrong_loses_nothing(life: Life, ada: User) -> None:
    await life.takes_first(lambda: ada.says("one"))
    await life.lost(lambda: ada.says("two"))
    bench = Bench(life.slack, life.store, life.inbox)
    bench.clock.ahead = timedelta(days=3000)
    await bench.adapter.start()
    await bench.takes(2)
    promised = bench.clock.now()
    sent = await bench.channel.send(row(plain("hi"), here()))
    assert await bench.channel.lookup(row(plain("hi"), here()), promised) == sent
    await bench.adapter.close()
