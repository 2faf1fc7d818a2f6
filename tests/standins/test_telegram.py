"""The genuine Telegram SDK against the stand-in: what it sends, shows and refuses."""

from collections.abc import AsyncIterator

import pytest
from telegram import (
    Bot,
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
    MessageEntity,
    ReplyParameters,
)
from telegram.error import (
    BadRequest,
    ChatMigrated,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.request import HTTPXRequest

from tests.standins.faults import (
    BAD_GATEWAY,
    GARBAGE,
    Fault,
    Hang,
    Refuse,
    Reset,
    StoreThenCut,
    too_many,
)
from tests.standins.telegram import TelegramStandIn
from tests.standins.telegram_flood import FloodLimits, Window
from tests.standins.telegram_user import User

GROUP = -1001


def sdk_bot(tg: TelegramStandIn, token: str | None = None) -> Bot:
    return Bot(
        token or tg.token,
        base_url=f"{tg.url}/bot",
        base_file_url=f"{tg.url}/file/bot",
        request=HTTPXRequest(httpx_kwargs={"trust_env": False}),
        get_updates_request=HTTPXRequest(httpx_kwargs={"trust_env": False}),
    )


@pytest.fixture
async def tg() -> AsyncIterator[TelegramStandIn]:
    async with TelegramStandIn() as tg:
        yield tg


@pytest.fixture
async def bot(tg: TelegramStandIn) -> AsyncIterator[Bot]:
    async with sdk_bot(tg) as bot:
        yield bot


@pytest.fixture
def ada(tg: TelegramStandIn) -> User:
    ada = tg.user(7, "Ada")
    ada.says("hello")
    return ada


async def test_the_user_sees_what_the_bot_sends(bot: Bot, ada: User) -> None:
    bold = MessageEntity("bold", 0, 3)
    sent = await bot.send_message(7, "Hi! Ada", entities=[bold])
    seen = ada.chat[-1]
    assert ada.bot_texts() == ["Hi! Ada"]
    assert (seen.id, seen.from_bot, seen.entities[0].part_of(seen.text)) == (
        sent.message_id,
        True,
        "Hi!",
    )
    assert sent.entities == (bold,)
    assert [message.text for message in ada.chat] == ["hello", "Hi! Ada"]


async def test_an_edit_keeps_the_message_and_its_history(bot: Bot, ada: User) -> None:
    sent = await bot.send_message(7, "thinking")
    edited = await bot.edit_message_text("done", 7, sent.message_id)
    seen = ada.chat[-1]
    assert isinstance(edited, Message)
    assert (edited.message_id, edited.text) == (sent.message_id, "done")
    assert [version.text for version in seen.versions] == ["thinking", "done"]
    assert seen.edits[0].at >= seen.sent_at
    assert ada.bot_texts() == ["done"]


async def test_an_edit_that_changes_nothing_is_refused(bot: Bot, ada: User) -> None:
    sent = await bot.send_message(7, "same")
    with pytest.raises(BadRequest, match=r"(?i)message is not modified"):
        await bot.edit_message_text("same \n", 7, sent.message_id)
    assert ada.chat[-1].edits == ()


async def test_only_an_own_message_of_that_chat_can_be_edited(
    tg: TelegramStandIn, bot: Bot, ada: User
) -> None:
    tg.user(8, "Bob").says("hi")
    sent = await bot.send_message(8, "for Bob")
    with pytest.raises(BadRequest, match=r"(?i)message to edit not found"):
        await bot.edit_message_text("x", 7, sent.message_id)
    with pytest.raises(BadRequest, match=r"(?i)message can't be edited"):
        await bot.edit_message_text("x", 7, ada.chat[0].id)


async def test_a_deleted_message_is_gone(bot: Bot, ada: User) -> None:
    sent = await bot.send_message(7, "oops")
    await bot.delete_message(7, sent.message_id)
    assert ada.bot_texts() == []
    with pytest.raises(BadRequest, match=r"(?i)message to delete not found"):
        await bot.delete_message(7, sent.message_id)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("x" * 4097, "message is too long"), ("👋" * 2049, "too long"), (" \n", "text is empty")],
    ids=["units", "emoji", "blank"],
)
async def test_a_bad_text_is_refused(bot: Bot, ada: User, text: str, reason: str) -> None:
    with pytest.raises(BadRequest, match=rf"(?i){reason}"):
        await bot.send_message(7, text)
    await bot.send_message(7, "👋" * 2048)
    assert len(ada.bot_texts()) == 1


async def test_a_bad_entity_is_refused(bot: Bot, ada: User) -> None:
    with pytest.raises(BadRequest, match=r"(?i)can't parse entities"):
        await bot.send_message(7, "👋", entities=[MessageEntity("bold", 0, 1)])
    assert ada.bot_texts() == []


async def test_who_can_be_written_to(tg: TelegramStandIn, bot: Bot, ada: User) -> None:
    with pytest.raises(BadRequest, match=r"(?i)Chat not found"):
        await bot.send_message(99, "hello?")
    ada.blocks_bot()
    with pytest.raises(Forbidden, match=r"(?i)blocked by the user"):
        await bot.send_message(7, "hello?")
    ada.unblocks_bot()
    tg.group(GROUP)
    tg.kicks_bot(GROUP)
    with pytest.raises(Forbidden, match=r"(?i)kicked"):
        await bot.send_message(GROUP, "hello?")
    await bot.send_message(7, "hello!")
    assert ada.bot_texts() == ["hello!"]


async def test_a_wrong_or_revoked_token_is_refused(tg: TelegramStandIn, bot: Bot) -> None:
    assert (await bot.get_me()).username == "stillhere_bot"
    with pytest.raises(InvalidToken):
        await sdk_bot(tg, "123456:other").__aenter__()
    tg.revoke_token()
    with pytest.raises(InvalidToken):
        await bot.get_me()


async def test_an_unknown_method_is_not_found(bot: Bot) -> None:
    with pytest.raises(EndPointNotFound):
        await bot.do_api_request("sendRichMessage", {"chat_id": 7})


async def test_a_message_that_was_stored_before_the_cut_is_there(
    tg: TelegramStandIn, bot: Bot, ada: User
) -> None:
    tg.faults.next("sendMessage", StoreThenCut(), Reset())
    with pytest.raises(NetworkError):
        await bot.send_message(7, "once")
    with pytest.raises(NetworkError):
        await bot.send_message(7, "never")
    assert ada.bot_texts() == ["once"]
    assert [c.outcome for c in tg.calls_of("sendMessage")] == ["stored, then cut", "reset"]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (too_many(1), RetryAfter),
        (Refuse(400, "Bad Request", parameters={"migrate_to_chat_id": -9}), ChatMigrated),
        (Refuse(500, "Internal Server Error"), NetworkError),
        (BAD_GATEWAY, NetworkError),
        (GARBAGE, TelegramError),
        (Hang(), TimedOut),
    ],
    ids=["429", "migrated", "500", "502", "garbage", "hang"],
)
@pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")
async def test_each_fault_is_the_error_that_the_sdk_knows(
    tg: TelegramStandIn, bot: Bot, ada: User, fault: Fault, error: type[Exception]
) -> None:
    tg.faults.next("sendMessage", fault)
    with pytest.raises(error):
        await bot.send_message(7, "hello", read_timeout=0.2)
    assert ada.bot_texts() == []


async def test_topics_and_replies(tg: TelegramStandIn, bot: Bot, ada: User) -> None:
    tg.group(GROUP, forum=True)
    asked = ada.says_in(GROUP, "where?", thread_id=5, mention=True)
    sent = await bot.send_message(
        GROUP, "here", message_thread_id=5, reply_parameters=ReplyParameters(asked.id)
    )
    assert (sent.message_thread_id, sent.is_topic_message) == (5, True)
    seen = ada.sees(GROUP)[-1]
    assert (seen.text, seen.thread_id, seen.reply_to) == ("here", 5, asked.id)
    with pytest.raises(BadRequest, match=r"(?i)thread not found"):
        await bot.send_message(GROUP, "nowhere", message_thread_id=6)
    with pytest.raises(BadRequest, match=r"(?i)replied not found"):
        await bot.send_message(GROUP, "to none", reply_parameters=ReplyParameters(999))


async def test_drafts_and_actions_are_for_the_moment(
    tg: TelegramStandIn, bot: Bot, ada: User
) -> None:
    tg.group(GROUP)
    await bot.send_chat_action(7, "typing")
    await bot.send_message_draft(7, 1, "Let me")
    await bot.send_message_draft(7, 1, "Let me see")
    assert tg.methods.actions == [(7, "typing")]
    assert (ada.drafts(), ada.bot_texts()) == (["Let me", "Let me see"], [])
    with pytest.raises(BadRequest, match=r"(?i)PEER_INVALID"):
        await bot.send_message_draft(GROUP, 1, "not in groups")


async def test_files_go_both_ways(bot: Bot, ada: User) -> None:
    photo = ada.sends_photo(b"\xff\xd8", caption="look")
    document = ada.sends_document("a b.txt", b"letter")
    voice = ada.sends_voice()
    updates = await bot.get_updates()
    took = [update.message for update in updates if update.message][1:]
    assert [message.message_id for message in took] == [photo.id, document.id, voice.id]
    assert (took[0].caption, took[1].document is not None) == ("look", True)
    assert took[2].voice is not None
    file = await bot.get_file(document.attachment.file_id if document.attachment else "")
    assert await file.download_as_bytearray() == b"letter"
    await bot.send_document(7, b"long text", filename="answer.md", caption="as a file")
    seen = ada.chat[-1]
    assert (seen.text, seen.attachment and seen.attachment.data) == ("as a file", b"long text")


async def test_a_button_is_clicked_and_answered(tg: TelegramStandIn, bot: Bot, ada: User) -> None:
    buttons = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes:1")]])
    sent = await bot.send_message(7, "May I?", reply_markup=buttons)
    query_id = ada.clicks(sent.message_id, "yes:1")
    query = (await bot.get_updates())[-1].callback_query
    assert query is not None
    assert (query.id, query.data, query.from_user.id) == (query_id, "yes:1", 7)
    await query.answer("thanks")
    assert tg.methods.query_answers[query_id] is not None
    with pytest.raises(BadRequest, match=r"(?i)query is too old"):
        await bot.answer_callback_query("none")


async def test_the_command_menu_is_kept(bot: Bot) -> None:
    await bot.set_my_commands([BotCommand("stop", "Stops")])
    assert await bot.get_my_commands() == (BotCommand("stop", "Stops"),)
    with pytest.raises(BadRequest, match=r"(?i)BOT_COMMAND_INVALID"):
        await bot.set_my_commands([BotCommand("Stop!", "Stops")])


@pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")
async def test_floods_are_refused_and_counted(tg: TelegramStandIn, bot: Bot, ada: User) -> None:
    limits = tg.limit_floods(FloodLimits(private=Window(2, 60), overall=Window(3, 60)))
    tg.user(8).says("hi")
    for _ in range(2):
        await bot.send_message(7, "x")
    with pytest.raises(RetryAfter):
        await bot.send_message(7, "x")
    await bot.send_message(8, "x")
    with pytest.raises(RetryAfter):
        await bot.send_message(8, "x")
    assert (len(ada.bot_texts()), dict(limits.violations)) == (2, {7: 1, 8: 1})
