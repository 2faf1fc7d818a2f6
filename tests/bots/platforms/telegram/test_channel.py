"""Sending through the genuine SDK: where it goes, and what each refusal of Telegram's means."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from core.domain.keys import Address
from core.domain.messages import Attachment, OutboxMessage, Part
from core.errors import PermanentError, StillhereError, TransientError, UnknownOutcomeError
from core.ports import Channel
from tests.bots.platforms.telegram.kit import GROUP, Bench
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
)
from tests.standins.telegram import TelegramStandIn
from tests.standins.telegram_text import Entity
from tests.standins.telegram_user import User

HERE = Address(platform="telegram", account="123456", chat="7")
BAD_ENTITIES = Refuse(400, "Bad Request: can't parse entities: unexpected end")
MOVED = Refuse(400, "Bad Request: upgraded", parameters={"migrate_to_chat_id": GROUP})


def row(part: Part, address: Address = HERE) -> OutboxMessage:
    return OutboxMessage(id="k@1", key="k", address=address, kind="answer", part=part)


def plain(text: str) -> Part:
    return Part(text=text, plain=text)


def sends(channel: Channel) -> Awaitable[object]:
    return channel.send(row(plain("hi")))


def edits(channel: Channel) -> Awaitable[object]:
    return channel.edit(HERE, "2", plain("hi"))


def types(channel: Channel) -> Awaitable[object]:
    return channel.typing(HERE)


@pytest.fixture
async def bench(tg: TelegramStandIn, ada: User) -> AsyncIterator[Bench]:
    """Not started: sending needs no intake."""
    ada.says("hello")
    bench = Bench(tg)
    yield bench
    await bench.adapter.close()


@pytest.fixture
def channel(bench: Bench) -> Channel:
    return bench.adapter.channel


async def test_markdown_arrives_with_its_entities(channel: Channel, ada: User) -> None:
    (part,) = channel.render("see **this** at [home](https://example.org)")
    sent = await channel.send(row(part))
    seen = ada.chat[-1]
    assert (str(seen.id), seen.text) == (sent, "see this at home")
    assert seen.entities == (
        Entity("bold", 4, 4),
        Entity("text_link", 12, 4, url="https://example.org"),
    )


async def test_no_parse_mode_no_link_preview_and_no_quote_in_a_dm(
    bench: Bench, channel: Channel
) -> None:
    sent = await channel.send(row(plain("look: https://example.org")))
    await channel.edit(HERE, sent, plain("look there: https://example.org"))
    for call in bench.tg.calls_of("sendMessage", "editMessageText"):
        assert call.params["link_preview_options"] == '{"is_disabled": true}'
        assert call.params.keys().isdisjoint({"parse_mode", "reply_parameters"})


async def test_a_preview_is_edited_into_the_answer(channel: Channel, ada: User) -> None:
    preview = channel.preview("**Let** me")
    assert preview is not None
    sent = await channel.send(row(preview))
    await channel.edit(HERE, sent, plain("Let me see"))
    assert ada.bot_texts() == ["Let me see"]
    assert [version.text for version in ada.chat[-1].versions] == ["Let me", "Let me see"]


async def test_an_edit_that_changes_nothing_is_a_success(channel: Channel, ada: User) -> None:
    sent = await channel.send(row(plain("done")))
    await channel.edit(HERE, sent, plain("done"))
    assert len(ada.chat[-1].versions) == 1


async def test_what_comes_from_a_topic_is_answered_there(bench: Bench, ada: User) -> None:
    tg, channel = bench.tg, bench.adapter.channel
    await bench.adapter.start()
    tg.group(GROUP, forum=True)
    asked = ada.says_in(GROUP, "where?", thread_id=5, mention=True)
    address = (await bench.takes(2))[-1].address
    await channel.typing(address)
    await channel.send(row(plain("here"), address))
    seen = ada.sees(GROUP)[-1]
    assert (seen.text, seen.thread_id, seen.reply_to) == ("here", 5, asked.id)
    assert tg.methods.actions == [(GROUP, "typing")]
    assert tg.calls_of("sendChatAction")[0].params["message_thread_id"] == 5


async def test_a_topic_in_a_dm_is_answered_there(bench: Bench, ada: User) -> None:
    await bench.adapter.start()
    ada.says("where?", thread_id=9)
    address = (await bench.takes(2))[-1].address
    await bench.adapter.channel.send(row(plain("here"), address))
    assert (ada.chat[-1].thread_id, ada.chat[-1].reply_to) == (9, None)


async def test_the_answer_to_a_deleted_message_arrives(bench: Bench, ada: User) -> None:
    bench.tg.group(GROUP)
    address = Address(
        platform="telegram", account="123456", chat=str(GROUP), chat_type="group", reply_to="999"
    )
    await bench.adapter.channel.send(row(plain("still here"), address))
    assert ada.bot_texts(GROUP) == ["still here"]


async def test_a_group_that_moved_is_answered_in_its_new_place(bench: Bench, ada: User) -> None:
    bench.tg.group(GROUP)
    bench.tg.faults.next("sendMessage", MOVED)
    old = Address(platform="telegram", account="123456", chat="-5", chat_type="group")
    await bench.adapter.channel.send(row(plain("found you"), old))
    assert ada.bot_texts(GROUP) == ["found you"]


async def test_refused_entities_are_left_out_once(bench: Bench, ada: User) -> None:
    part = Part(text="bold", plain="*bold*", markup=[{"type": "bold", "offset": 0, "length": 4}])
    bench.tg.faults.next("sendMessage", BAD_ENTITIES)
    bench.tg.faults.next("editMessageText", BAD_ENTITIES)
    sent = await bench.adapter.channel.send(row(part))
    assert (ada.bot_texts(), ada.chat[-1].entities) == (["*bold*"], ())
    await bench.adapter.channel.edit(
        HERE, sent, msg := Part(text="b", plain="c", markup=part.markup)
    )
    assert ada.bot_texts() == [msg.plain]
    bench.tg.faults.always("sendMessage", BAD_ENTITIES)
    with pytest.raises(PermanentError, match="parse entities"):
        await bench.adapter.channel.send(row(part))
    assert len(bench.tg.calls_of("sendMessage")) == 4


async def test_a_doubtful_send_is_never_followed_by_its_plain_twin(bench: Bench, ada: User) -> None:
    part = Part(text="bold", plain="*bold*", markup=[{"type": "bold", "offset": 0, "length": 4}])
    bench.tg.faults.next("sendMessage", StoreThenCut(), Raw(400, "<html>Bad Request</html>"))
    for _ in range(2):
        with pytest.raises(UnknownOutcomeError):
            await bench.adapter.channel.send(row(part))
    assert (ada.bot_texts(), len(bench.tg.calls_of("sendMessage"))) == (["bold"], 2)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Reset(), UnknownOutcomeError),
        (StoreThenCut(), UnknownOutcomeError),
        (SERVER_ERROR, UnknownOutcomeError),
        (BAD_GATEWAY, UnknownOutcomeError),
        (GARBAGE, UnknownOutcomeError),
        (Raw(200, "{}", "application/json"), UnknownOutcomeError),
        (Raw(401, "<html>"), UnknownOutcomeError),
        (Raw(403, "<html>"), UnknownOutcomeError),
        (Refuse(400, "Bad Request: message thread not found"), PermanentError),
        (Refuse(400, "Bad Request: not enough rights to send, retry after 401"), PermanentError),
        (Refuse(403, "Forbidden: bot was kicked from the group chat"), PermanentError),
        (Refuse(401, "Unauthorized"), TransientError),
        (Refuse(409, "Conflict"), TransientError),
    ],
    ids=["reset", "cut", "500", "502", "garbage", "empty", "a proxy's 401",
         "a proxy's 403", "400", "400 with a 401 in its text", "403", "401", "409"],
)  # fmt: skip
@pytest.mark.parametrize(
    ("method", "call"),
    [("sendMessage", sends), ("editMessageText", edits), ("sendChatAction", types)],
)
async def test_a_fault_is(
    bench: Bench,
    method: str,
    call: Callable[[Channel], Awaitable[object]],
    fault: Fault,
    error: type[StillhereError],
) -> None:
    await bench.adapter.channel.send(row(plain("the bot's own")))
    bench.tg.faults.next(method, fault)
    calls = len(bench.tg.calls)
    with pytest.raises(StillhereError) as caught:
        await call(bench.adapter.channel)
    assert type(caught.value) is error
    assert len(bench.tg.calls) == calls + 1


async def test_an_answer_without_a_message_leaves_it_open(bench: Bench) -> None:
    answer = Raw(200, '{"ok": true, "result": {"message": 5}}', "application/json")
    bench.tg.faults.next("sendMessage", answer)
    with pytest.raises(UnknownOutcomeError):
        await bench.adapter.channel.send(row(plain("hi")))


@pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")
async def test_too_many_says_how_long(bench: Bench) -> None:
    bench.tg.faults.next("sendMessage", Refuse(429, "Too Many Requests", retry_after=17))
    with pytest.raises(TransientError) as caught:
        await bench.adapter.channel.send(row(plain("hi")))
    assert caught.value.retry_after == 17.0


async def test_a_connection_that_never_was_sent_nothing(tg: TelegramStandIn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}"
    bench = Bench(tg, TELEGRAM_API_URL=nobody)
    with pytest.raises(TransientError):
        await bench.adapter.channel.send(row(plain("hi")))
    assert not bench.adapter.health().ok


async def test_a_refused_token_burns_nothing_and_is_not_hammered(bench: Bench) -> None:
    bench.tg.revoke_token()
    channel = bench.adapter.channel
    for _ in range(3):
        with pytest.raises(TransientError) as caught:
            await channel.send(row(plain("hi")))
        assert caught.value.retry_after == 60.0
        with pytest.raises(TransientError):
            await channel.typing(HERE)
    assert len(bench.tg.calls) == 1
    health = bench.adapter.health()
    assert (health.ok, "TELEGRAM_BOT_TOKEN" in health.detail) == (False, True)


async def test_an_error_shows_no_token(tg: TelegramStandIn) -> None:
    bench = Bench(tg, TELEGRAM_API_URL="http://127.0.0.1:1\x7f")
    with capture_logs() as logs, pytest.raises(StillhereError) as caught:
        await bench.adapter.channel.send(row(plain("hi")))
    assert "InvalidURL" in str(caught.value)
    assert "stand-in-token" not in f"{caught.value!r} {logs}"


async def test_nobody_can_say_whether_a_message_arrived(bench: Bench) -> None:
    assert await bench.adapter.channel.lookup(row(plain("hi")), LONG_AGO) is None
    assert bench.tg.calls == []


def kept(tg: TelegramStandIn, data: bytes = b"the file") -> Attachment:
    return Attachment(kind="document", ref=tg.chats.keep_file("document", data, "a", "b").file_id)


async def test_a_file_is_fetched_as_often_as_one_likes(
    channel: Channel, tg: TelegramStandIn
) -> None:
    file = kept(tg)
    assert await channel.fetch(file, 100) == b"the file"
    assert await channel.fetch(file, 8) == b"the file"


@pytest.mark.parametrize("limit", [0, 7])
async def test_one_that_is_larger_than_allowed_is_not_even_begun(
    channel: Channel, tg: TelegramStandIn, limit: int
) -> None:
    with pytest.raises(PermanentError):
        await channel.fetch(kept(tg), limit)
    assert tg.calls_of("file") == []


async def test_one_that_telegram_does_not_know_is_gone(channel: Channel) -> None:
    with pytest.raises(PermanentError):
        await channel.fetch(Attachment(kind="photo", ref="nothing"), 100)


@pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")
@pytest.mark.parametrize("call", ["getFile", "file"])
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Reset(), UnknownOutcomeError),
        (StoreThenCut(), UnknownOutcomeError),
        (BAD_GATEWAY, UnknownOutcomeError),
        (Refuse(429, "Too Many Requests", retry_after=3), TransientError),
    ],
    ids=["cut", "cut in the answer", "a proxy's page", "too many"],
)
async def test_what_breaks_on_the_way_may_be_tried_again_and_holds_no_token(
    channel: Channel, tg: TelegramStandIn, call: str, fault: Fault, error: type[StillhereError]
) -> None:
    file = kept(tg)
    tg.faults.next(call, fault)
    with pytest.raises(error) as caught:
        await channel.fetch(file, 100)
    assert tg.token.partition(":")[2] not in str(caught.value)
    assert await channel.fetch(file, 100) == b"the file"
