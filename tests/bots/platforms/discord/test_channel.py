"""Sending through the genuine SDK: where it goes, and what each refusal of Discord's means."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from bots.platforms.discord.channel import DiscordChannel
from core.domain.keys import Address
from core.domain.messages import Button, OutboxMessage, Part
from core.errors import PermanentError, StillhereError, TransientError, UnknownOutcomeError
from tests.bots.platforms.discord.kit import CHANNEL, FOREIGN, THREAD, Bench
from tests.contract.values import LONG_AGO
from tests.standins.discord import DiscordStandIn
from tests.standins.discord_user import User
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

HTML = "<html>"


def coded(status: int, code: int, text: str = "no") -> Refuse:
    return Refuse(status, text, parameters={"code": code})


def plain(text: str) -> Part:
    return Part(text=text, plain=text)


@pytest.fixture
async def bench(place: DiscordStandIn, ada: User) -> AsyncIterator[Bench]:
    """Not started: sending needs no intake."""
    ada.says("hello")
    bench = Bench(place)
    yield bench
    await bench.adapter.close()


@pytest.fixture
def channel(bench: Bench) -> DiscordChannel:
    channel = bench.adapter.channel
    assert isinstance(channel, DiscordChannel)
    return channel


@pytest.fixture
def here(ada: User) -> Address:
    return here_of(ada)


def here_of(ada: User) -> Address:
    reply_to = str(ada.chat[0].id) if ada.chat else ""
    return Address(platform="discord", account="123456", chat=str(ada.dm), reply_to=reply_to)


def row(part: Part, address: Address, number: int = 1) -> OutboxMessage:
    return OutboxMessage(id=f"k@{number}", key="k", address=address, kind="answer", part=part)


def there(channel_id: int, reply_to: int | None = None) -> Address:
    return Address(
        platform="discord",
        account="123456",
        chat=str(channel_id),
        chat_type="channel",
        reply_to=str(reply_to or ""),
    )


async def test_nobody_is_called_by_a_mention_and_no_preview_of_a_link_is_shown(
    bench: Bench, channel: DiscordChannel, here: Address
) -> None:
    sent = await channel.send(row(plain("@everyone <@8> https://example.org"), here))
    await channel.edit(here, sent, plain("@here"))
    first, edit = bench.place.calls_of("create_message", "edit_message")
    assert first.params["allowed_mentions"] == edit.params["allowed_mentions"] == {"parse": []}
    assert first.params["flags"] == 4
    assert (first.params["enforce_nonce"], len(first.params["nonce"])) == (True, 25)
    assert "message_reference" not in first.params


async def test_a_question_in_a_guild_is_answered_below_it(
    channel: DiscordChannel, ada: User
) -> None:
    asked = ada.says_in(THREAD, "where?", mention=True)
    await channel.send(row(plain("here"), there(THREAD, asked.id)))
    seen = ada.sees(THREAD)[-1]
    assert (seen.text, seen.reply_to) == ("here", asked.id)


async def test_the_answer_to_a_deleted_message_arrives(channel: DiscordChannel, ada: User) -> None:
    await channel.send(row(plain("still here"), there(CHANNEL, 999)))
    assert (ada.bot_texts(CHANNEL), ada.sees(CHANNEL)[-1].reply_to) == (["still here"], None)


async def test_a_very_long_answer_is_a_file(
    channel: DiscordChannel, here: Address, ada: User
) -> None:
    answer = "\n\n".join(f"Paragraph {number}. " * 20 for number in range(80))
    preview = channel.preview(answer)
    (part,) = channel.render(answer)
    assert preview is not None
    shown = await channel.send(row(preview, here))
    await channel.edit(here, shown, part)
    await channel.edit(here, shown, part)
    (seen,) = [message for message in ada.chat if message.from_bot]
    assert (seen.whole, [file.name for file in seen.files]) == (answer, ["answer.md"])
    assert seen.text.startswith("Paragraph 0.")


async def test_buttons_come_and_go(channel: DiscordChannel, here: Address, ada: User) -> None:
    part = Part(text="failed", plain="failed", buttons=(Button("Try again", "/retry"),))
    sent = await channel.send(row(part, here))
    assert list(ada.chat[-1].buttons) == ["Try again"]
    await channel.edit(here, sent, plain("done"))
    assert ada.chat[-1].buttons == {}


async def test_a_doubtful_send_is_sent_again_and_said_once(
    bench: Bench, channel: DiscordChannel, here: Address, ada: User
) -> None:
    bench.place.faults.next("create_message", StoreThenCut())
    message = row(plain("once"), here)
    with pytest.raises(UnknownOutcomeError):
        await channel.send(message)
    assert await channel.lookup(message, LONG_AGO) is None
    sent = await channel.send(message)
    assert (ada.bot_texts(), sent) == (["once"], str(ada.chat[-1].id))
    assert bench.place.calls_of("get_messages") == []


def preview(address: Address) -> OutboxMessage:
    """As the core asks for it: its words are not kept."""
    return replace(row(plain(""), address), kind="preview")


def answer(address: Address) -> OutboxMessage:
    return replace(row(plain("all of it"), address, 2), edits="k@1")


async def says_half(bench: Bench, here: Address, fault: Fault) -> None:
    """A preview whose outcome is unknown."""
    bench.place.faults.next("create_message", fault)
    with pytest.raises(UnknownOutcomeError):
        await bench.adapter.channel.send(row(plain("all of"), here))


@pytest.mark.parametrize(
    ("fault", "calls"), [(StoreThenCut(), ["create_message"] * 2 + ["edit_message"]),
                         (Reset(), ["create_message"] * 2)],
    ids=["it arrived", "it did not"],
)  # fmt: skip
async def test_an_answer_takes_the_place_of_a_doubtful_preview(
    bench: Bench, here: Address, ada: User, fault: Fault, calls: list[str]
) -> None:
    await says_half(bench, here, fault)
    after = Bench(bench.place)
    assert await after.adapter.channel.lookup(preview(here), LONG_AGO) is None
    steered = replace(here, reply_to=str(ada.says("and one more thing").id))
    sent = await after.adapter.channel.send(answer(steered))
    await after.adapter.close()
    (shown,) = [message for message in ada.chat if message.from_bot]
    assert (shown.text, str(shown.id)) == ("all of it", sent)
    made = bench.place.calls_of("create_message", "edit_message")
    assert [call.method for call in made] == calls


async def test_a_preview_that_is_not_asked_for_is_left_alone(
    channel: DiscordChannel, here: Address, ada: User
) -> None:
    """It arrived, and what it shows is unknown: an edit of it may still be under way."""
    await channel.send(row(plain("all of"), here))
    await channel.send(answer(here))
    assert ada.bot_texts() == ["all of", "all of it"]


async def test_an_answer_whose_doubtful_preview_is_gone_arrives(
    bench: Bench, channel: DiscordChannel, here: Address, ada: User
) -> None:
    await says_half(bench, here, StoreThenCut())
    await channel.lookup(preview(here), LONG_AGO)
    bench.place.faults.next("edit_message", coded(404, 10008, "Unknown Message"))
    await channel.send(answer(here))
    assert ada.bot_texts() == ["all of", "all of it"]


async def test_a_doubtful_answer_in_a_previews_place_is_said_once(
    bench: Bench, channel: DiscordChannel, here: Address, ada: User
) -> None:
    await says_half(bench, here, StoreThenCut())
    await channel.lookup(preview(here), LONG_AGO)
    bench.place.faults.next("create_message", StoreThenCut())
    bench.place.faults.next("edit_message", StoreThenCut())
    for _ in range(2):
        with pytest.raises(UnknownOutcomeError):
            await channel.send(answer(here))
        assert await channel.lookup(answer(here), LONG_AGO) is None
    await channel.send(answer(here))
    assert ada.bot_texts() == ["all of it"]


async def test_after_a_short_while_the_nonce_knows_what_arrived(
    bench: Bench, channel: DiscordChannel, here: Address, ada: User
) -> None:
    """Of two that read the same the history could not tell which is there."""
    await channel.send(row(plain("ok"), here, 1))
    after = Bench(bench.place, bench.store)
    for number in (1, 2):
        message = row(plain("ok"), here, number)
        assert await after.adapter.channel.lookup(message, LONG_AGO) is None
        await after.adapter.channel.send(message)
    await after.adapter.close()
    assert ada.bot_texts() == ["ok", "ok"]
    assert bench.place.calls_of("get_messages") == []


async def test_after_a_long_while_the_history_knows_what_arrived(place: DiscordStandIn) -> None:
    place.chats.seconds_ago = 600
    ada = place.user(7, "Ada")
    first = here_of(ada)
    before = Bench(place)
    await before.adapter.channel.send(row(plain("ok"), first, 1))
    second = replace(first, reply_to=str(ada.says("again?").id))
    sent = await before.adapter.channel.send(row(plain("ok"), second, 2))
    await before.adapter.close()
    ada.says("never said")
    after = Bench(place, before.store)
    lookup = after.adapter.channel.lookup
    assert await lookup(row(plain("ok"), second, 2), LONG_AGO) == sent
    assert await lookup(row(plain("never said"), second, 3), LONG_AGO) is None
    third = replace(first, reply_to=str(ada.says("and again?").id))
    assert await lookup(row(plain("ok"), third, 4), LONG_AGO) is None
    await after.adapter.close()


async def test_a_row_that_only_has_an_old_ones_name_is_said(
    channel: DiscordChannel, here: Address, ada: User
) -> None:
    """In a database that was made anew, or after a log was set aside."""
    await channel.send(row(plain("of old"), here))
    asked = ada.says("and now?")
    await channel.send(row(plain("of new"), replace(here, reply_to=str(asked.id))))
    assert ada.bot_texts() == ["of old", "of new"]


async def test_a_history_that_is_closed_to_us_settles_nothing(
    channel: DiscordChannel, ada: User
) -> None:
    assert await channel.lookup(row(plain("hi"), there(FOREIGN)), LONG_AGO) is None


async def test_a_history_out_of_reach_leaves_it_open(
    bench: Bench, channel: DiscordChannel, here: Address
) -> None:
    bench.place.faults.next("get_messages", BAD_GATEWAY)
    with pytest.raises(UnknownOutcomeError):
        await channel.lookup(row(plain("hi"), replace(here, reply_to="")), LONG_AGO)


def sends(channel: DiscordChannel, here: Address, _: str) -> Awaitable[object]:
    return channel.send(row(plain("hi"), here, 2))


def edits(channel: DiscordChannel, here: Address, shown: str) -> Awaitable[object]:
    return channel.edit(here, shown, plain("hi"))


def types(channel: DiscordChannel, here: Address, _: str) -> Awaitable[object]:
    return channel.typing(here)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Reset(), UnknownOutcomeError),
        (StoreThenCut(), UnknownOutcomeError),
        (SERVER_ERROR, UnknownOutcomeError),
        (BAD_GATEWAY, UnknownOutcomeError),
        (Raw(401, HTML), UnknownOutcomeError),
        (Raw(403, HTML), UnknownOutcomeError),
        (Raw(404, HTML), UnknownOutcomeError),
        (Raw(429, "error code: 1015"), TransientError),
        (coded(400, 50035), PermanentError),
        (coded(400, 50006, "not a 429 nor 401"), PermanentError),
        (coded(403, 50007), PermanentError),
        (coded(403, 50278), PermanentError),
        (coded(404, 10003), PermanentError),
        (coded(413, 40005), PermanentError),
        (Refuse(404, "404: Not Found"), TransientError),
        (Refuse(401, "401: Unauthorized"), TransientError),
        (too_many(17), TransientError),
    ],
    ids=["reset", "cut", "500", "502", "a proxy's 401", "a proxy's 403",
         "a proxy's 404", "Cloudflare's 429", "400", "empty", "DMs closed", "not installed",
         "unknown channel", "too large", "no such path", "401", "429"],
)  # fmt: skip
@pytest.mark.parametrize(
    ("method", "call"),
    [("create_message", sends), ("edit_message", edits), ("typing", types)],
)
async def test_a_fault_is(
    bench: Bench,
    channel: DiscordChannel,
    here: Address,
    method: str,
    call: Callable[[DiscordChannel, Address, str], Awaitable[object]],
    fault: Fault,
    error: type[StillhereError],
) -> None:
    shown = await channel.send(row(plain("the bot's own"), here))
    bench.place.faults.next(method, fault)
    calls = len(bench.place.calls)
    with pytest.raises(StillhereError) as caught:
        await call(channel, here, shown)
    assert type(caught.value) is error
    assert len(bench.place.calls) == calls + 1


async def test_an_answer_that_cannot_be_read_leaves_it_open(
    bench: Bench, channel: DiscordChannel, here: Address
) -> None:
    bench.place.faults.next("create_message", GARBAGE, Raw(200, "{}", "application/json"))
    for _ in range(2):
        with pytest.raises(UnknownOutcomeError):
            await channel.send(row(plain("hi"), here))


async def test_too_many_says_how_long_and_blocks_no_other_channel(
    bench: Bench, channel: DiscordChannel, here: Address, ada: User
) -> None:
    bench.place.faults.next("create_message", too_many(17))
    with pytest.raises(TransientError) as caught:
        await channel.send(row(plain("hi"), here))
    assert caught.value.retry_after == 17.0
    async with asyncio.timeout(5):
        await channel.send(row(plain("elsewhere"), there(CHANNEL), 2))
        await channel.send(row(plain("hi"), here))
    assert (ada.bot_texts(), ada.bot_texts(CHANNEL)) == (["hi"], ["elsewhere"])


async def test_a_connection_that_never_was_sent_nothing(place: DiscordStandIn, ada: User) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}"
    bench = Bench(place, DISCORD_API_URL=nobody)
    with pytest.raises(TransientError):
        await bench.adapter.channel.send(row(plain("hi"), there(ada.dm)))
    assert not bench.adapter.health().ok


async def test_a_refused_token_burns_nothing_and_is_not_hammered(
    bench: Bench, channel: DiscordChannel, here: Address
) -> None:
    bench.place.revoke_token()
    for _ in range(3):
        with pytest.raises(TransientError) as caught:
            await channel.send(row(plain("hi"), here))
        assert caught.value.retry_after == 60.0
        with pytest.raises(TransientError):
            await channel.typing(here)
    assert len(bench.place.calls) == 1
    health = bench.adapter.health()
    assert (health.ok, "DISCORD_BOT_TOKEN" in health.detail) == (False, True)


async def test_an_error_shows_no_token(place: DiscordStandIn, ada: User) -> None:
    bench = Bench(place)
    place.faults.always("get_me", Refuse(403, f"who is {place.token}?", parameters={"code": 1}))
    with capture_logs() as logs, pytest.raises(StillhereError) as caught:
        await bench.adapter.channel.send(row(plain("hi"), there(ada.dm)))
    health = await bench.adapter.check()
    assert "***" in str(caught.value)
    assert "stand-in" not in f"{caught.value!r} {logs} {health}"


async def test_a_file_is_fetched_by_its_message(
    bench: Bench, channel: DiscordChannel, ada: User
) -> None:
    await bench.adapter.start()
    await bench.is_well()
    ada.sends_file("a.txt", b"all of it", "read this")
    (taken,) = await bench.takes()
    (file,) = taken.attachments
    assert await channel.fetch(file, 9) == b"all of it"
    with pytest.raises(PermanentError, match="larger than 8 bytes"):
        await channel.fetch(file, 8)
    ada.deletes(ada.chat[-1])
    with pytest.raises(PermanentError):
        await channel.fetch(file, 9)
