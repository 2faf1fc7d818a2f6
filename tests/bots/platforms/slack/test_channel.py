"""Sending through the genuine SDK: where it goes, and what each refusal of Slack's means."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import aiohttp
import msgspec
import pytest

from bots.platforms.slack.channel import SlackChannel
from bots.platforms.slack.faults import fault_of
from core.domain.messages import Button, OutboxMessage, Part
from core.errors import PermanentError, StillhereError, TransientError, UnknownOutcomeError
from core.ports import Channel
from tests.bots.platforms.slack.kit import CHANNEL, Bench, here, plain, row
from tests.contract.values import LONG_AGO
from tests.standins.faults import (
    BAD_GATEWAY,
    GARBAGE,
    SERVER_ERROR,
    Fault,
    Raw,
    Refuse,
    Reset,
    StoreThenCut,
    too_many,
)
from tests.standins.slack import SlackStandIn
from tests.standins.slack_user import User
from tests.standins.slack_world import slack_error

POST, UPDATE, STATUS = "chat.postMessage", "chat.update", "assistant.threads.setStatus"
STREAMS = ("chat.startStream", "chat.appendStream", "chat.stopStream")
PRESSES = (Button("Again", "/retry"), Button("New", "/new"))


def sends(channel: Channel) -> Awaitable[object]:
    return channel.send(row(plain("hi"), here()))


def types(channel: Channel) -> Awaitable[object]:
    return channel.typing(here(thread="1.0"))


@pytest.fixture
async def bench(slack: SlackStandIn, ada: User) -> AsyncIterator[Bench]:
    """Not started: sending needs no intake."""
    bench = Bench(slack)
    slack.events.subscribed = frozenset()
    ada.says("hello")
    slack.events.subscribed = None
    yield bench
    await bench.adapter.close()


@pytest.fixture
def channel(bench: Bench) -> SlackChannel:
    return bench.channel


def previewed(channel: Channel, text: str) -> Part:
    part = channel.preview(text)
    assert part is not None
    return part


async def test_an_answer_is_slacks_markdown_with_a_plain_twin(
    bench: Bench, channel: Channel, ada: User
) -> None:
    (part,) = channel.render("see **this** <!channel> & that")
    ts = await channel.send(row(part, here()))
    sent = ada.chat[-1]
    assert (sent.ts, sent.shown) == (ts, "see **this** <\u200b!channel> & that")
    assert sent.text == "see **this** &lt;\u200b!channel&gt; &amp; that"
    (call,) = bench.slack.calls_of(POST)
    assert [call.params[name] for name in ("link_names", "unfurl_links", "unfurl_media")] == [
        False
    ] * 3


async def test_what_a_notification_shows_is_short(channel: Channel, ada: User) -> None:
    (part,) = channel.render("é&" * 5_000)
    ts = await channel.send(row(part, here()))
    await channel.edit(here(), ts, part)
    assert ada.bot_texts() == ["é&" * 5_000]
    assert 3_700 < len(ada.chat[-1].text.encode()) <= 3_800
    assert ada.chat[-1].text.endswith(("é", "&amp;"))


async def test_a_thread_is_answered_in_the_thread(channel: Channel, ada: User) -> None:
    root = ada.says_in(CHANNEL, "hm", mention=True)
    ts = await channel.send(row(plain("yes"), here(CHANNEL, root.ts)))
    assert [message.ts for message in ada.sees(CHANNEL, root.ts)] == [root.ts, ts]
    assert ada.sees(CHANNEL)[-1].thread_ts == root.ts


async def test_buttons_are_pressed_where_they_stand(bench: Bench, ada: User) -> None:
    await bench.adapter.start()
    await bench.is_well()
    root = ada.says("go", thread=ada.chat[0].ts)
    part = Part(text="Failed", plain="Failed", buttons=PRESSES)
    address = here(ada.dm, root.thread_ts)
    ts = await bench.channel.send(row(part, address))
    await bench.takes(1)
    ada.clicks(ts, "/retry")
    ada.clicks(ts, "/retry")
    pressed = (await bench.takes(3))[1:]
    assert [(press.text, press.user, press.user_name) for press in pressed] == [
        ("/retry", "U7", "Ada")
    ] * 2
    assert {press.address for press in pressed} == {address}
    await bench.slack.wait_for(lambda: not bench.slack.events.open_ones)
    assert bench.slack.events.lost == []


async def test_an_edit_takes_the_buttons_away(channel: Channel, ada: User) -> None:
    ts = await channel.send(row(Part(text="?", plain="?", buttons=PRESSES), here()))
    assert len(ada.chat[-1].buttons) == 2
    await channel.edit(here(), ts, plain("done"))
    assert (ada.chat[-1].buttons, ada.bot_texts()) == ([], ["done"])


async def test_a_preview_outside_of_threads_is_edited(
    bench: Bench, channel: Channel, ada: User
) -> None:
    ts = await channel.send(row(previewed(channel, "Let"), here()))
    await channel.edit(here(), ts, previewed(channel, "Let me"))
    await channel.edit(here(), ts, plain("Let me see"))
    assert ada.bot_texts() == ["Let me see"]
    assert bench.slack.calls_of(*STREAMS) == []


async def test_a_preview_in_a_channel_is_edited_so_that_all_see_it(
    bench: Bench, channel: Channel, ada: User
) -> None:
    root = ada.says_in(CHANNEL, "hm", mention=True)
    await channel.send(row(previewed(channel, "Let"), here(CHANNEL, root.ts)))
    assert bench.slack.calls_of(*STREAMS) == []
    assert ada.bot_texts(CHANNEL) == ["Let"]


async def test_a_preview_in_a_thread_is_streamed(bench: Bench, channel: Channel, ada: User) -> None:
    address = here(ada.dm, ada.chat[0].ts)
    ts = await channel.send(row(previewed(channel, "Let"), address))
    for text in ("Let me", "Let me", "Let me see"):
        await channel.edit(address, ts, previewed(channel, text))
    assert ada.bot_texts() == ["Let me see"]
    await channel.edit(address, ts, plain("Let me see."))
    assert ada.bot_texts() == ["Let me see."]
    calls = [call.method for call in bench.slack.calls]
    assert calls == ["chat.startStream", *["chat.appendStream"] * 2, "chat.stopStream", UPDATE]


async def test_a_stream_that_slack_ended_is_edited(
    bench: Bench, channel: Channel, ada: User
) -> None:
    address = here(ada.dm, ada.chat[0].ts)
    ts = await channel.send(row(previewed(channel, "Let"), address))
    bench.slack.ends_streams()
    await channel.edit(address, ts, previewed(channel, "Let me"))
    assert ada.bot_texts() == ["Let me"]
    await channel.edit(address, ts, plain("Let me see"))
    assert ada.bot_texts() == ["Let me see"]


async def test_a_stream_that_does_not_go_on_as_it_began_is_edited(
    channel: Channel, ada: User
) -> None:
    address = here(ada.dm, ada.chat[0].ts)
    ts = await channel.send(row(previewed(channel, "Let me"), address))
    await channel.edit(address, ts, previewed(channel, "I see"))
    assert ada.bot_texts() == ["I see"]


async def test_a_stream_that_a_killed_process_left_open_is_finished(
    bench: Bench, channel: Channel, ada: User
) -> None:
    address = here(ada.dm, ada.chat[0].ts)
    ts = await channel.send(row(previewed(channel, "Let"), address))
    later = Bench(bench.slack)
    await later.channel.edit(address, ts, previewed(channel, "Let me"))
    assert ada.bot_texts() == ["Let me"]
    await later.channel.edit(address, ts, plain("Let me see"))
    assert ada.bot_texts() == ["Let me see"]
    await later.adapter.close()


@pytest.mark.parametrize("is_thread", [True, False], ids=["streamed", "posted"])
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "cut"])
async def test_a_preview_in_doubt_becomes_the_answer(
    bench: Bench, ada: User, is_thread: bool, is_killed: bool
) -> None:
    """Whether its process was killed before it knew, or the answer to it was cut."""
    address = here(ada.dm, ada.chat[0].ts if is_thread else "")
    part = previewed(bench.channel, "Let")
    preview = OutboxMessage(id="k:p", key="k", address=address, kind="preview", part=part)
    bench.slack.faults.next("chat.startStream" if is_thread else POST, StoreThenCut())
    with pytest.raises(UnknownOutcomeError):
        await bench.channel.send(preview)
    later = Bench(bench.slack) if is_killed else bench
    answer = msgspec.structs.replace(row(plain("Let me see"), address), edits="k:p")
    ts = await later.channel.send(answer)
    assert (ada.bot_texts(), ada.chat[-1].ts) == (["Let me see"], ts)
    assert await later.channel.lookup(answer, LONG_AGO) == ts
    again = msgspec.structs.replace(row(plain("And"), address, "k@2"), edits="k:other")
    await later.channel.send(again)
    assert ada.bot_texts() == ["Let me see", "And"]
    await later.adapter.close()


async def test_an_answer_that_was_said_is_never_taken_for_a_preview_in_doubt(
    bench: Bench, channel: Channel, ada: User
) -> None:
    address = here(ada.dm, ada.chat[0].ts)
    ts = await channel.send(row(previewed(channel, "One"), address))
    bench.slack.ends_streams()
    await channel.edit(address, ts, previewed(channel, "One, "))
    await channel.edit(address, ts, plain("One, two"))
    await channel.send(msgspec.structs.replace(row(plain("Three"), address), edits="k:p"))
    assert ada.bot_texts() == ["One, two", "Three"]


async def test_a_look_for_a_preview_costs_an_answer_nothing(
    bench: Bench, channel: Channel, ada: User
) -> None:
    answer = msgspec.structs.replace(row(plain("hi"), here()), edits="k:p")
    bench.slack.faults.next("conversations.history", too_many(17))
    await channel.send(answer)
    assert ada.bot_texts() == ["hi"]
    bench.clock.ahead = timedelta(hours=1)
    await channel.send(answer)
    assert len(bench.slack.calls_of("conversations.history")) == 1


async def test_a_growth_in_doubt_is_edited(bench: Bench, channel: Channel, ada: User) -> None:
    address = here(ada.dm, ada.chat[0].ts)
    ts = await channel.send(row(previewed(channel, "Let"), address))
    bench.slack.faults.next("chat.appendStream", StoreThenCut())
    await channel.edit(address, ts, previewed(channel, "Let me"))
    assert ada.bot_texts() == ["Let me"]


async def test_where_there_are_no_streams_previews_are_edited(
    bench: Bench, channel: Channel, ada: User
) -> None:
    bench.slack.methods.streams_allowed = False
    address = here(ada.dm, ada.chat[0].ts)
    ts = await channel.send(row(previewed(channel, "Let"), address))
    await channel.edit(address, ts, previewed(channel, "Let me"))
    await channel.send(row(previewed(channel, "And"), address, "k@2"))
    assert ada.bot_texts() == ["Let me", "And"]
    assert len(bench.slack.calls_of(*STREAMS)) == 1


async def test_a_status_is_shown_in_threads_and_taken_away(
    bench: Bench, channel: Channel, ada: User
) -> None:
    await channel.typing(here(ada.dm))
    address = here(ada.dm, ada.chat[0].ts)
    await channel.typing(address)
    await channel.typing(address)
    assert ada.status() == ["is thinking…"]
    await channel.send(row(previewed(channel, "Let"), address))
    await channel.send(row(plain("Let me see"), address))
    assert ada.status() == ["is thinking…", ""]
    await channel.send(row(plain("More"), address))
    assert len(bench.slack.calls_of(STATUS)) == 2


async def test_a_status_is_refreshed_before_slack_takes_it_away(
    bench: Bench, channel: Channel, ada: User
) -> None:
    address = here(ada.dm, ada.chat[0].ts)
    await channel.typing(address)
    bench.clock.ahead = timedelta(seconds=61)
    await channel.typing(address)
    assert len(ada.status()) == 2


async def test_what_slack_refuses_of_a_status_is_no_trouble(bench: Bench, ada: User) -> None:
    bench.slack.faults.always(STATUS, slack_error("missing_scope"))
    address = here(ada.dm, ada.chat[0].ts)
    await bench.channel.typing(address)
    await bench.channel.send(row(plain("hi"), address))
    assert ada.bot_texts() == ["hi"]


async def test_a_send_in_doubt_is_found_by_its_id(channel: Channel, ada: User) -> None:
    for number in range(150):
        await channel.send(row(plain(f"m{number}"), here(), f"k@{number}"))
    found = [await channel.lookup(row(plain("?"), here(), f"k@{n}"), LONG_AGO) for n in (0, 149)]
    assert found == [ada.chat[1].ts, ada.chat[150].ts]
    assert await channel.lookup(row(plain("?"), here(), "k@150"), LONG_AGO) is None


@pytest.mark.parametrize("is_thread", [True, False], ids=["in a thread", "at the top"])
async def test_a_send_in_doubt_is_found_after_days(
    bench: Bench, ada: User, is_thread: bool
) -> None:
    """Killed before it knew that an answer had arrived, and started again after the weekend."""
    message = row(plain("hi"), here(ada.dm, ada.chat[0].ts if is_thread else ""))
    promised = bench.clock.now()
    sent = await bench.channel.send(message)
    bench.slack.world.ahead = timedelta(days=3).total_seconds()
    later = Bench(bench.slack)
    later.clock.ahead = timedelta(days=3)
    assert await later.channel.lookup(message, promised) == sent
    await later.adapter.close()


async def test_a_preview_of_a_process_that_was_killed_is_found_after_days(
    bench: Bench, ada: User
) -> None:
    part = previewed(bench.channel, "Let")
    await bench.channel.send(
        OutboxMessage(id="k:p", key="k", address=here(), kind="preview", part=part)
    )
    bench.slack.world.ahead = timedelta(days=3).total_seconds()
    later = Bench(bench.slack)
    assert (await later.adapter.check()).ok
    await later.channel.send(msgspec.structs.replace(row(plain("Let me"), here()), edits="k:p"))
    assert ada.bot_texts() == ["Let me"]
    await later.adapter.close()


async def test_nothing_is_read_of_the_time_before_a_message_was_promised(
    bench: Bench, channel: Channel, ada: User
) -> None:
    for number in range(150):
        await channel.send(row(plain(f"m{number}"), here(), f"k@{number}"))
    bench.slack.world.ahead = timedelta(hours=1).total_seconds()
    bench.clock.ahead = timedelta(hours=1)
    promised = bench.clock.now()
    sent = await channel.send(row(plain("hi"), here()))
    assert await channel.lookup(row(plain("hi"), here()), promised) == sent
    assert await channel.lookup(row(plain("?"), here(), "k@?"), promised) is None
    assert len(bench.slack.calls_of("conversations.history")) == 2


async def test_a_send_in_doubt_is_found_in_its_thread(channel: Channel, ada: User) -> None:
    address = here(ada.dm, ada.chat[0].ts)
    ts = await channel.send(row(plain("in the thread"), address, "k@1"))
    assert await channel.lookup(row(plain("?"), address, "k@1"), LONG_AGO) == ts
    assert await channel.lookup(row(plain("?"), here(), "k@1"), LONG_AGO) is None


@pytest.mark.parametrize("fault", [StoreThenCut(), Reset()], ids=["stored", "not stored"])
async def test_a_cut_send_ends_as_one_message(
    bench: Bench, channel: Channel, ada: User, fault: Fault
) -> None:
    bench.slack.faults.next(POST, fault)
    message = row(plain("hi"), here())
    with pytest.raises(UnknownOutcomeError):
        await channel.send(message)
    if await channel.lookup(message, LONG_AGO) is None:
        await channel.send(message)
    assert ada.bot_texts() == ["hi"]


async def test_a_history_that_is_kept_from_us_does_not_hold_up_an_answer(
    bench: Bench, channel: Channel
) -> None:
    bench.slack.scopes = frozenset({"chat:write"})
    assert await channel.lookup(row(plain("hi"), here()), LONG_AGO) is None


async def test_a_look_that_fails_settles_nothing(bench: Bench, channel: Channel) -> None:
    bench.slack.faults.next("conversations.history", too_many(17), BAD_GATEWAY)
    with pytest.raises(TransientError):
        await channel.lookup(row(plain("hi"), here()), LONG_AGO)
    with pytest.raises(UnknownOutcomeError):
        await channel.lookup(row(plain("hi"), here()), LONG_AGO)


async def test_refused_blocks_are_left_out_once(bench: Bench, ada: User) -> None:
    bench.slack.faults.next(POST, slack_error("invalid_blocks"))
    bench.slack.faults.next(UPDATE, slack_error("msg_blocks_too_long"))
    channel = bench.channel
    ts = await channel.send(row(plain("a < " + "b" * 20_000), here()))
    assert ada.bot_texts() == ["a < " + "b" * 20_000]
    await channel.edit(here(), ts, plain("c < d"))
    assert (ada.bot_texts(), ada.chat[-1].blocks) == (["c < d"], [])
    bench.slack.faults.next(UPDATE, slack_error("invalid_blocks"))
    with pytest.raises(PermanentError):
        await channel.edit(here(), ts, plain("e" * 5_000))


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Reset(), UnknownOutcomeError),
        (StoreThenCut(), UnknownOutcomeError),
        (SERVER_ERROR, UnknownOutcomeError),
        (BAD_GATEWAY, UnknownOutcomeError),
        (GARBAGE, UnknownOutcomeError),
        (Raw(200, "{}", "application/json"), UnknownOutcomeError),
        (Raw(200, '{"ok": true}', "application/json"), UnknownOutcomeError),
        (Raw(200, "[1]", "application/json"), UnknownOutcomeError),
        (Raw(200, "invalid_auth", "text/plain"), UnknownOutcomeError),
        (Raw(403, "<html>invalid_auth"), UnknownOutcomeError),
        (Raw(401, "<html>"), UnknownOutcomeError),
        (
            Raw(503, '{"ok": false, "error": "is_archived"}', "application/json"),
            UnknownOutcomeError,
        ),
        (slack_error("fatal_error"), UnknownOutcomeError),
        (slack_error("internal_error"), UnknownOutcomeError),
        (slack_error("channel_not_found"), PermanentError),
        (slack_error("is_archived"), PermanentError),
        (slack_error("not_in_channel"), PermanentError),
        (slack_error("msg_too_long"), PermanentError),
        (slack_error("a_word_that_is_new"), PermanentError),
        (slack_error("team_added_to_org"), TransientError),
        (slack_error("ratelimited"), TransientError),
        (Raw(429, "slow down"), TransientError),
        (slack_error("invalid_auth"), TransientError),
    ],
    ids=lambda value: getattr(value, "text", "") or getattr(value, "body", "")[:20] or None,
)
async def test_a_fault_is(
    bench: Bench, ada: User, fault: Fault, error: type[StillhereError]
) -> None:
    bench.slack.faults.next(POST, fault)
    with pytest.raises(StillhereError) as caught:
        await sends(bench.channel)
    assert type(caught.value) is error
    assert len(bench.slack.calls) == 1


async def test_too_many_says_how_long(bench: Bench) -> None:
    bench.slack.faults.next(POST, too_many(17))
    with pytest.raises(TransientError) as caught:
        await sends(bench.channel)
    assert caught.value.retry_after == 17.0


async def test_an_error_names_the_scope_that_is_needed(bench: Bench) -> None:
    bench.slack.scopes = frozenset()
    with pytest.raises(PermanentError, match="the scope chat:write"):
        await sends(bench.channel)


async def test_a_connection_that_never_was_sent_nothing(slack: SlackStandIn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
    bench = Bench(slack, SLACK_API_URL=nobody)
    for call in (sends, types):
        with pytest.raises(TransientError):
            await call(bench.channel)
    await bench.adapter.close()


@pytest.mark.parametrize("call", [sends, types])
async def test_a_refused_token_is_not_hammered(
    bench: Bench, call: Callable[[Channel], Awaitable[object]]
) -> None:
    bench.slack.refuse_token("account_inactive")
    for _ in range(3):
        with pytest.raises(TransientError) as caught:
            await call(bench.channel)
        assert caught.value.retry_after == 60.0
    assert len(bench.slack.calls) == 1
    health = bench.adapter.health()
    assert (health.ok, "account_inactive" in health.detail) == (False, True)


async def test_a_word_in_a_text_is_no_code(bench: Bench, ada: User) -> None:
    """FIELD S6: another fault whose text holds the code of a refused token."""
    bench.slack.faults.next(
        POST, Refuse(200, "channel_not_found", parameters={"x": "invalid_auth"})
    )
    with pytest.raises(PermanentError):
        await sends(bench.channel)
    await sends(bench.channel)
    assert ada.bot_texts() == ["hi"]


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (TimeoutError(), "unknown"),
        (ConnectionResetError(), "unknown"),
        (KeyError("ts"), "unknown"),
        (aiohttp.ConnectionTimeoutError(), "unsent"),
        (aiohttp.InvalidURL("x"), "unsent"),
    ],
)
def test_other_errors_are(error: Exception, fault: str) -> None:
    assert fault_of(error) == fault


async def test_a_file_is_fetched(bench: Bench, channel: SlackChannel, ada: User) -> None:
    await bench.adapter.start()
    ada.sends_file(data=b"0123456789")
    (file,) = (await bench.takes(1))[0].attachments
    assert await channel.fetch(file, 10) == b"0123456789"
    with pytest.raises(PermanentError):
        await channel.fetch(file, 9)


async def test_a_file_that_is_gone_or_grew_is_given_up(
    bench: Bench, channel: SlackChannel, ada: User
) -> None:
    await bench.adapter.start()
    ada.sends_file(data=b"0123456789")
    (file,) = (await bench.takes(1))[0].attachments
    bench.slack.faults.next("file", Raw(200, "<html>login"), Refuse(404, "gone"), BAD_GATEWAY)
    for error in (PermanentError, PermanentError, UnknownOutcomeError):
        with pytest.raises(error):
            await channel.fetch(file, 100)
    bench.slack.world.files.clear()
    with pytest.raises(PermanentError):
        await channel.fetch(file, 100)


async def test_check_asks_for_both_tokens_and_opens_nothing(bench: Bench) -> None:
    found = await bench.adapter.check()
    assert (found.ok, "Socket Mode" in found.detail) == (True, True)
    assert bench.slack.events.sockets == {}
    bench.slack.refuse_token(app=True)
    assert not (await bench.adapter.check()).ok
