"""Answers through the genuine SDK: where they go and how they look there; and files."""

import pytest

from bots.platforms.slack.channel import SlackChannel
from core.domain.messages import Button, Part
from core.errors import PermanentError, UnknownOutcomeError
from core.ports import Channel
from tests.bots.platforms.slack.kit import CHANNEL, Bench, here, plain, row
from tests.standins.faults import (
    BAD_GATEWAY,
    Raw,
    Refuse,
)
from tests.standins.slack_user import User
from tests.standins.slack_world import slack_error

POST, UPDATE = "chat.postMessage", "chat.update"
PRESSES = (Button("Again", "/retry"), Button("New", "/new"))


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
