"""Socket Mode: what is stored is acknowledged, nothing else; sockets are replaced."""

import asyncio

import pytest
from structlog.testing import capture_logs

from bots.platforms.patience import Patience
from bots.platforms.signs import Signs
from bots.platforms.slack import settings
from bots.platforms.slack.client import Client
from bots.platforms.slack.front import Front
from bots.platforms.slack.intake import Intake
from bots.platforms.slack.names import Names
from bots.platforms.slack.places import Places
from bots.platforms.slack.socket import Socket, Watch
from bots.platforms.slack.words import WORDS, judge
from bots.platforms.taker import Taker
from core.errors import StorageError
from tests.bookmarks import no_bookmarks
from tests.bots.platforms.slack.kit import CHANNEL, Bench, Inbox, QuickClock, socketed
from tests.standins.faults import BAD_GATEWAY, SERVER_ERROR, Reset, Slow, too_many
from tests.standins.slack import CONNECT, SOCKET, SlackStandIn
from tests.standins.slack_user import User, bot_message


async def test_a_message_is_taken_and_acknowledged(bench: Bench, ada: User) -> None:
    said = ada.says("hello")
    (taken,) = await bench.takes()
    await bench.slack.wait_for(lambda: bench.slack.events.taken)
    assert (taken.text, taken.user, taken.user_name, taken.person) == (
        "hello",
        "U7",
        "Ada",
        "T1.U7",
    )
    assert (taken.update_id, taken.message_id) == (f"{ada.dm}:{said.ts}", said.ts)
    assert bench.slack.events.envelopes[0].deliveries == 1


async def test_half_an_emoji_is_taken_and_acknowledged(bench: Bench, ada: User) -> None:
    ada.says("cut \ud83d")
    (taken,) = await bench.takes()
    assert taken.text.startswith("cut ")
    await bench.slack.wait_for(lambda: bench.slack.events.taken)


async def test_it_is_acknowledged_only_when_it_is_stored(bench: Bench, ada: User) -> None:
    bench.slack.events.ack_seconds = 0.2
    bench.inbox.failing = StorageError("disk full")
    ada.says("hello")
    await bench.says("cannot be stored")
    await bench.slack.wait_for(lambda: bench.slack.events.envelopes[0].deliveries >= 2)
    assert bench.slack.events.taken == []
    bench.inbox.failing = None
    await bench.takes()
    await bench.slack.wait_for(lambda: bench.slack.events.taken)
    await bench.is_well()


async def test_what_is_delivered_again_is_the_same_update(bench: Bench, ada: User) -> None:
    ada.says("hello")
    await bench.takes()
    await bench.slack.wait_for(lambda: bench.slack.events.taken)
    bench.slack.redeliver(bench.slack.events.envelopes[0])
    await bench.slack.wait_for(lambda: len(bench.inbox.offered) >= 2)
    assert bench.inbox.offered[0] == bench.inbox.offered[1]


async def test_a_mention_is_one_update_although_it_comes_twice(bench: Bench, ada: User) -> None:
    ada.says_in(CHANNEL, "you there?", mention=True)
    await bench.slack.wait_for(lambda: len(bench.inbox.offered) >= 2)
    assert bench.inbox.offered[0] == bench.inbox.offered[1]


async def test_two_messages_at_once_keep_their_order(bench: Bench, ada: User) -> None:
    texts = [f"m{number}" for number in range(20)]
    for text in texts:
        ada.says(text)
    await bench.takes(20)
    assert bench.inbox.texts == texts


async def test_a_message_does_not_overtake_one_whose_writer_is_looked_up(
    bench: Bench, ada: User
) -> None:
    bench.slack.faults.next("users.info", Slow(0.3))
    ada.says("one")
    ada.says("two")
    await bench.takes(2)
    assert bench.inbox.texts == ["one", "two"]


async def test_what_is_not_for_us_is_acknowledged_too(bench: Bench, ada: User) -> None:
    said = ada.says("hello")
    ada.edits(said.ts, "hello!")
    ada.deletes(said.ts)
    ada.says_in(CHANNEL, "not to you")
    ada.says("", subtype="channel_join")
    ada.says("from an app", extra=bot_message("from an app"))
    bench.slack.methods.table["chat.postMessage"]({"channel": ada.dm, "text": "the bot's own"})
    await bench.slack.wait_for(lambda: len(bench.slack.events.taken) == 7)
    assert [inbound.text for inbound in bench.inbox.taken] == ["hello"]


async def test_a_socket_is_replaced_before_slack_closes_it(bench: Bench, ada: User) -> None:
    await bench.slack.refresh_sockets()
    await bench.slack.wait_for(lambda: 2 in bench.slack.events.sockets)
    ada.says("hello")
    await bench.takes()
    assert bench.adapter.health().ok
    assert bench.slack.calls_of("conversations.history") == []


async def test_a_lost_socket_is_replaced(bench: Bench, ada: User) -> None:
    await bench.slack.drop_sockets()
    await bench.slack.wait_for(lambda: 2 in bench.slack.events.sockets)
    ada.says("hello")
    await bench.takes()
    await bench.is_well()


async def test_failures_to_connect_are_waited_for_longer_and_longer(
    slack: SlackStandIn, ada: User
) -> None:
    slack.faults.next(CONNECT, BAD_GATEWAY, Reset(), too_many(17))
    slack.faults.next(SOCKET, SERVER_ERROR)
    async with socketed(slack) as bench:
        ada.says("hello")
        await bench.takes()
        first, second, third, fourth = bench.pauses[:4]
        assert 0.5 <= first <= 1 <= second <= 2 and third == 17 and 4 <= fourth <= 8


async def test_sockets_that_are_soon_lost_are_not_replaced_at_once(bench: Bench) -> None:
    for number in range(1, 4):
        await bench.slack.wait_for(lambda number=number: number in bench.slack.events.sockets)
        await bench.slack.drop_sockets()
    await bench.slack.wait_for(lambda: 4 in bench.slack.events.sockets)
    first, second, third = bench.pauses
    assert 0.5 <= first <= 1 <= second <= 2 <= third <= 4


async def test_a_socket_that_was_of_use_is_replaced_within_a_second(
    bench: Bench, ada: User
) -> None:
    for number in range(1, 6):
        await bench.slack.wait_for(lambda number=number: number in bench.slack.events.sockets)
        ada.says(f"m{number}")
        await bench.takes(number)
        await bench.slack.drop_sockets()
    await bench.slack.wait_for(lambda: 6 in bench.slack.events.sockets)
    assert len(bench.pauses) == 5
    assert max(bench.pauses) <= 1


async def test_sockets_that_slack_wants_replaced_at_once_are_not_replaced_at_once(
    bench: Bench,
) -> None:
    for number in range(1, 4):
        await bench.slack.wait_for(lambda number=number: number in bench.slack.events.sockets)
        await bench.slack.refresh_sockets()
    await bench.slack.wait_for(lambda: 4 in bench.slack.events.sockets)
    first, second, third = bench.pauses
    assert 0.5 <= first <= 1 <= second <= 2 <= third <= 4


async def test_a_silent_socket_is_replaced(slack: SlackStandIn, ada: User) -> None:
    clock, inbox, gaps = QuickClock(), Inbox(), list[int]()
    chosen = settings.Settings(
        bot_token=slack.bot_token, app_token=slack.app_token, api_url=slack.api_url
    )
    client = Client(chosen)
    signs = Signs("slack", WORDS, 90.0, clock)
    patience = Patience(signs, clock, lambda error: judge(error, chosen.redact))
    places = Places(no_bookmarks("slack"))
    intake = Intake(Taker(inbox.accept, signs), places, Names(client), clock, ())
    front = Front(client, chosen, intake, signs)
    watch = Watch(signs, patience, clock)
    running = Socket(client, front, watch, lambda: gaps.append(1), ping_seconds=0.1)
    task = asyncio.create_task(running.run())
    await slack.wait_for(lambda: 1 in slack.events.sockets)
    await asyncio.sleep(0.5)
    assert list(slack.events.sockets) == [1]
    slack.events.fall_silent()
    await slack.wait_for(lambda: len(gaps) == 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await client.close()


@pytest.mark.parametrize("app", [False, True], ids=["bot token", "app token"])
async def test_a_refused_token_stops_it_with_one_line(slack: SlackStandIn, app: bool) -> None:
    slack.refuse_token("account_inactive", app=app)
    with capture_logs() as logs:
        async with socketed(slack) as bench:
            await bench.says("SLACK_BOT_TOKEN")
            calls = len(slack.calls)
            await asyncio.sleep(0.3)
            assert len(slack.calls) == calls
            assert "account_inactive" in bench.adapter.health().detail
            assert not bench.adapter.health().ok
    assert [entry["log_level"] for entry in logs].count("error") == 1


async def test_a_token_that_is_refused_later_is_found_out(bench: Bench) -> None:
    bench.slack.refuse_token(app=True)
    await bench.slack.drop_sockets()
    await bench.says("refuses a token")


async def test_start_and_stop_may_come_twice(slack: SlackStandIn, ada: User) -> None:
    bench = Bench(slack)
    await bench.adapter.start()
    await bench.adapter.start()
    await bench.is_well()
    await slack.wait_for(lambda: slack.events.sockets)
    assert len(slack.events.sockets) == 1
    await bench.adapter.stop()
    await bench.adapter.stop()
    await slack.wait_for(lambda: not slack.events.sockets)
    await bench.adapter.start()
    await bench.is_well()
    ada.says("hello")
    await bench.takes()
    assert len(bench.inbox.offered) == 1
    await bench.adapter.close()
    await bench.adapter.close()


async def test_another_instance_is_no_trouble(bench: Bench, ada: User) -> None:
    async with socketed(bench.slack, inbox=bench.inbox) as other:
        await other.is_well()
        for number in range(6):
            ada.says(f"m{number}")
        await bench.takes(6)
        assert len(bench.inbox.offered) == 6
        sockets = {n for envelope in bench.slack.events.envelopes for n in envelope.sent_to}
        assert sockets == {1, 2}
