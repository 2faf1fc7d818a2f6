"""An answer in the making: streamed or edited, with a status where Slack shows one."""

from datetime import timedelta

from core.ports import Channel
from tests.bots.platforms.slack.kit import CHANNEL, Bench, here, plain, previewed, row
from tests.standins.faults import (
    StoreThenCut,
)
from tests.standins.slack_user import User
from tests.standins.slack_world import slack_error

UPDATE, STATUS = "chat.update", "assistant.threads.setStatus"
STREAMS = ("chat.startStream", "chat.appendStream", "chat.stopStream")


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
