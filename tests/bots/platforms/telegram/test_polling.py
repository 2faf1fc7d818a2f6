"""Polling through the genuine SDK: what is stored is confirmed, and nothing else is."""

import asyncio

import pytest
from structlog.testing import capture_logs

from bots.platforms.telegram.translate import WANTED
from core.domain.keys import Address
from core.errors import StorageError, UnstorableError
from tests.bots.platforms.telegram.kit import COMMANDS, Bench, polling
from tests.standins.faults import BAD_GATEWAY, GARBAGE, Fault, Raw, Refuse, Reset
from tests.standins.telegram import TelegramStandIn
from tests.standins.telegram_updates import OTHER_POLLER
from tests.standins.telegram_user import User

CONFLICT = Refuse(409, OTHER_POLLER)

NOT_FOUND = Refuse(404, "Not Found")


async def test_a_dm_is_taken_with_all_that_it_takes_to_answer(bench: Bench, ada: User) -> None:
    said = ada.says("hello")
    (taken,) = await bench.takes()
    assert taken.address == Address(platform="telegram", account="123456", chat="7")
    assert (taken.user, taken.user_name, taken.text) == ("7", "Ada", "hello")
    assert (taken.update_id, taken.message_id) == (str(said.update_id), str(said.id))
    assert taken.sent_at.timestamp() == int(said.sent_at)
    assert taken.sent_at.utcoffset() is not None
    assert not taken.trusted
    await bench.tg.wait_for(lambda: bench.tg.updates.confirmed == {said.update_id})


async def test_messages_are_taken_in_their_order(bench: Bench, ada: User) -> None:
    texts = [f"number {number}" for number in range(30)]
    for text in texts:
        ada.says(text)
    await bench.takes(30)
    assert bench.inbox.texts == texts


async def test_an_update_that_comes_again_is_offered_under_the_same_id(
    bench: Bench, ada: User
) -> None:
    said = ada.says("once")
    await bench.tg.wait_for(lambda: bench.tg.updates.confirmed)
    bench.tg.redeliver(said.update_id or 0)
    first, again = await bench.takes(2)
    assert first == again
    await bench.tg.wait_for(lambda: not bench.tg.updates.pending)


async def test_what_cannot_be_stored_stays_at_telegram(bench: Bench, ada: User) -> None:
    bench.inbox.failing = StorageError("disk full")
    first, second = ada.says("one").update_id, ada.says("two").update_id
    await bench.tg.wait_for(lambda: len(bench.inbox.offered) >= 3)
    assert {inbound.text for inbound in bench.inbox.offered} == {"one"}
    assert bench.tg.updates.pending == [first, second]
    health = bench.adapter.health()
    assert (health.ok, "disk full" in health.detail) == (False, True)
    bench.inbox.failing = None
    await bench.takes(2)
    assert bench.inbox.texts == ["one", "two"]
    await bench.is_well()
    await bench.tg.wait_for(lambda: not bench.tg.updates.pending)
    assert bench.clock.slept[:3] == sorted(bench.clock.slept[:3])


async def test_what_was_not_stored_is_offered_to_the_next_process(
    tg: TelegramStandIn, ada: User
) -> None:
    async with polling(tg) as first:
        first.inbox.failing = StorageError("disk full")
        ada.says("hold this")
        await tg.wait_for(lambda: first.inbox.offered)
    async with polling(tg) as second:
        await second.takes()
    assert (first.inbox.texts, second.inbox.texts) == ([], ["hold this"])


async def test_an_update_that_cannot_be_read_does_not_stop_those_with_it(
    tg: TelegramStandIn, ada: User
) -> None:
    tg.updates.add("message", {"message_id": 1, "chat": "not a chat"})
    ada.says("behind it")
    with capture_logs() as logs:
        async with polling(tg) as bench:
            await bench.takes()
            await tg.wait_for(lambda: not tg.updates.pending)
    (told,) = [line for line in logs if line["log_level"] == "error"]
    assert (told["update_id"], len(told["error_id"])) == (1001, 8)
    assert bench.inbox.texts == ["behind it"]


@pytest.mark.parametrize("error", [RuntimeError("a bug"), UnstorableError("value too long")])
async def test_an_update_that_breaks_admission_lets_the_others_pass_in_the_end(
    bench: Bench, ada: User, error: Exception
) -> None:
    bench.inbox.failures.extend(error for _ in range(5))
    with capture_logs() as logs:
        ada.says("poison")
        ada.says("behind it")
        await bench.takes()
    assert bench.inbox.texts == ["behind it"]
    told = [line["left_out"] for line in logs if line["log_level"] == "error"]
    assert told == [False] * 4 + [True]


async def test_another_instance_is_told_of_once_and_outwaited(
    tg: TelegramStandIn, ada: User
) -> None:
    tg.faults.always("getUpdates", CONFLICT)
    with capture_logs() as logs:
        async with polling(tg) as bench:
            await bench.says("another instance")
            await tg.wait_for(lambda: len(bench.clock.slept) >= 4)
            tg.faults.clear()
            ada.says("still there?")
            await bench.takes()
            await bench.is_well()
    states = [line["state"] for line in logs if line["event"] == "telegram"]
    assert states == ["connecting", "conflict", "receiving", "off"]
    assert all(2.5 <= seconds <= 5.0 for seconds in bench.clock.slept)


async def test_two_instances_take_turns_and_lose_nothing(tg: TelegramStandIn, ada: User) -> None:
    async with polling(tg) as one, polling(tg) as other:
        await tg.wait_for(lambda: tg.calls_of("getUpdates"))
        for number in range(5):
            ada.says(f"number {number}")
        await tg.wait_for(lambda: not tg.updates.pending)
    assert {*one.inbox.texts, *other.inbox.texts} == {f"number {n}" for n in range(5)}


async def test_a_refused_token_ends_it_with_one_line(bench: Bench, ada: User) -> None:
    tg = bench.tg
    with capture_logs() as logs:
        tg.revoke_token()
        ada.says("wakes the poll that is under way")
        await bench.says("refuses TELEGRAM_BOT_TOKEN")
        calls = len(tg.calls)
        await asyncio.sleep(0.1)
    assert len(tg.calls) == calls
    assert not bench.adapter.health().ok
    assert [line["state"] for line in logs if line["log_level"] == "error"] == ["refused"]


@pytest.mark.parametrize(
    "fault",
    [BAD_GATEWAY, GARBAGE, Reset(), Refuse(500, "oops"), Raw(404, "<html>"), NOT_FOUND],
    ids=["502", "garbage", "reset", "500", "a proxy's 404", "Telegram's 404"],
)
@pytest.mark.parametrize("method", ["getMe", "deleteWebhook", "getUpdates"])
async def test_a_failing_call_is_made_again(
    tg: TelegramStandIn, ada: User, method: str, fault: Fault
) -> None:
    tg.faults.next(method, fault, fault)
    async with polling(tg) as bench:
        ada.says("hello")
        await bench.takes()
        await bench.is_well()
    assert len(bench.clock.slept) == 2


async def test_an_answer_of_a_strange_shape_is_an_outage_too(
    tg: TelegramStandIn, ada: User
) -> None:
    tg.faults.next("getUpdates", Raw(200, "[]", "application/json"))
    async with polling(tg) as bench:
        ada.says("hello")
        await bench.takes()


@pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")
async def test_a_poll_that_is_told_to_slow_down_does(tg: TelegramStandIn, ada: User) -> None:
    tg.faults.next("getUpdates", Refuse(429, "Too Many Requests", retry_after=17))
    async with polling(tg) as bench:
        ada.says("hello")
        await bench.takes()
    assert bench.clock.slept == [17.0]


async def test_an_outage_is_waited_out(bench: Bench, ada: User) -> None:
    with capture_logs() as logs:
        await asyncio.to_thread(bench.tg.stop)
        await bench.tg.wait_for(lambda: len(bench.clock.slept) >= 3)
        assert "out of reach" in bench.adapter.health().detail
        bench.tg.start()
        ada.says("back?")
        await bench.takes()
        await bench.is_well()
    states = [line["state"] for line in logs if line["event"] == "telegram"]
    assert states == ["unreachable", "receiving"]


async def test_silence_is_not_health(bench: Bench) -> None:
    bench.clock.ahead += bench.clock.ahead.resolution * 91_000_000
    health = bench.adapter.health()
    assert (health.ok, "silent for 91 s" in health.detail) == (False, True)
    assert health.last_sign is not None


async def test_starting_does_not_wait_for_telegram(tg: TelegramStandIn, ada: User) -> None:
    bench = Bench(tg)
    await asyncio.to_thread(tg.stop)
    await bench.adapter.start()
    assert not bench.adapter.health().ok
    tg.start()
    ada.says("hello")
    await bench.takes()
    await bench.adapter.close()


async def test_starting_and_stopping_twice_over_stacks_nothing(bench: Bench, ada: User) -> None:
    tg, adapter = bench.tg, bench.adapter
    await adapter.start()
    assert len(tg.calls_of("getMe")) == 1
    for _ in range(2):
        await adapter.stop()
        await adapter.stop()
        await adapter.start()
        await adapter.start()
        await bench.is_well()
    ada.says("once")
    await bench.takes()
    await tg.wait_for(lambda: not tg.updates.pending)
    assert (len(bench.inbox.offered), len(tg.calls_of("getMe"))) == (1, 3)
    await adapter.close()
    await adapter.close()
    assert not adapter.health().ok
    await adapter.start()
    ada.says("after closing")
    await bench.takes(2)


async def test_an_offset_that_is_confirmed_is_forgotten(bench: Bench, ada: User) -> None:
    """Telegram's ids may start anew below it."""
    said = ada.says("hello").update_id or 0
    await bench.takes()
    await bench.adapter.stop()
    await bench.adapter.start()
    await bench.is_well()
    ada.says("and again")
    await bench.takes(2)
    offsets = [call.params.get("offset") for call in bench.tg.calls_of("getUpdates")]
    assert offsets[:2] == [None, None]
    assert said + 1 in offsets
    assert None in offsets[offsets.index(said + 1) :]


async def test_nothing_is_taken_after_a_stop(bench: Bench, ada: User) -> None:
    await bench.adapter.stop()
    ada.says("later")
    await asyncio.sleep(0.05)
    assert (bench.inbox.offered, len(bench.tg.updates.pending)) == ([], 1)


async def test_a_webhook_is_taken_away_but_its_messages_are_kept(
    tg: TelegramStandIn, ada: User
) -> None:
    tg.updates.set_webhook({"url": "http://127.0.0.1:9/hook"})
    ada.says("sent to the webhook")
    async with polling(tg) as bench:
        await bench.takes()
    assert tg.updates.webhook is None


async def test_edits_are_not_asked_for(bench: Bench, ada: User) -> None:
    said = ada.says("helo")
    await bench.takes()
    assert ada.edits(said.id, "hello").update_id is None
    asked = bench.tg.calls_of("getUpdates")
    assert [call.params["allowed_updates"] for call in asked] == [list(WANTED)] * len(asked)


async def test_the_commands_are_in_telegrams_menu(bench: Bench) -> None:
    (menu,) = bench.tg.methods.commands.values()
    assert [(entry["command"], entry["description"]) for entry in menu] == list(COMMANDS)


async def test_a_menu_that_is_refused_does_not_matter(tg: TelegramStandIn, ada: User) -> None:
    tg.faults.next("setMyCommands", Refuse(400, "Bad Request: BOT_COMMAND_INVALID"))
    async with polling(tg) as bench:
        ada.says("hello")
        await bench.takes()


async def test_a_check_names_the_bot_and_takes_no_message(tg: TelegramStandIn, ada: User) -> None:
    ada.says("hello")
    bench = Bench(tg)
    health = await bench.adapter.check()
    await bench.adapter.close()
    assert (health.ok, "@stillhere_bot" in health.detail) == (True, True)
    assert [call.method for call in tg.calls] == ["getMe"]


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (Refuse(401, "Unauthorized"), "TELEGRAM_BOT_TOKEN"),
        (Reset(), "out of reach"),
        (Raw(404, "<html>"), "out of reach"),
        (NOT_FOUND, "TELEGRAM_BOT_TOKEN"),
        (Raw(200, "[]", "application/json"), "out of reach"),
    ],
    ids=["refused", "reset", "a proxy's 404", "Telegram's 404", "strange"],
)
async def test_a_check_says_what_is_wrong(tg: TelegramStandIn, fault: Fault, word: str) -> None:
    tg.faults.next("getMe", fault)
    bench = Bench(tg)
    health = await bench.adapter.check()
    await bench.adapter.close()
    assert (health.ok, word in health.detail) == (False, True)
