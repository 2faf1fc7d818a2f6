"""Turns an update into an inbound message, or into nothing by a stated rule; pure.

Not for us are: edits (the message was answered as it was first sent), channel posts, other bots and
anonymous admins (nobody can say who they are), service messages, and in groups whatever is no
command, no mention of us and no reply to us.
"""

import msgspec
from telegram import Message, MessageEntity, Update
from telegram.constants import ChatType

from bots.platforms.telegram import contents
from core.domain import keys
from core.domain.keys import Address
from core.domain.messages import Inbound

WANTED = ("message", "callback_query")
"""The kinds of updates that Telegram is asked for; the last list sticks, so it is always sent."""

_CHAT_TYPES: dict[str, keys.ChatType] = {
    ChatType.PRIVATE: "dm",
    ChatType.GROUP: "group",
    ChatType.SUPERGROUP: "group",
}


class Me(msgspec.Struct, frozen=True):
    id: int
    username: str


def inbound(update: Update, me: Me) -> Inbound | None:
    message = update.message
    if message is None or message.from_user is None or message.from_user.is_bot:
        return None
    address = address_of(message, me)
    if address is None or message.is_automatic_forward:
        return None
    said = _in_group(message, me) if address.chat_type == "group" else _in_dm(message, me)
    text = None if said is None else _text(message, said)
    attachments = contents.attachments(message)
    if text is None or not (text or attachments):
        return None
    return Inbound(
        address=address,
        update_id=str(update.update_id),
        user=str(message.from_user.id),
        user_name=message.from_user.full_name,
        text=text,
        sent_at=message.date,
        message_id=str(message.message_id),
        attachments=attachments,
        album=message.media_group_id or "",
        quote=contents.quotation(message),
    )


def address_of(message: Message, me: Me) -> Address | None:
    """Where to answer it; None for a chat that is not for us."""
    chat_type = _CHAT_TYPES.get(message.chat.type)
    if chat_type is None:
        return None
    in_topic = message.is_topic_message and message.message_thread_id
    return Address(
        platform="telegram",
        account=str(me.id),
        chat=str(message.chat.id),
        chat_type=chat_type,
        thread=str(message.message_thread_id) if in_topic else "",
        reply_to=str(message.message_id) if chat_type == "group" else "",
    )


def _text(message: Message, said: str) -> str:
    """A command stays alone, or it would be none."""
    if said.startswith("/"):
        return said
    return "\n".join(line for line in (said, contents.description(message)) if line)


def _in_dm(message: Message, me: Me) -> str:
    text = _words(message)
    command = _command(message)
    name, _, bot = command.partition("@")
    return name + text[len(command) :] if _same(bot, me) else text


def _in_group(message: Message, me: Me) -> str | None:
    """None when it is not for us."""
    text = _words(message)
    if command := _command(message):
        name, _, bot = command.partition("@")
        return name + text[len(command) :] if not bot or _same(bot, me) else None
    for entity in _entities(message):
        if _is_mention(message, entity, me):
            return _without(text, entity) or text
    return text if _is_reply_to(message, me) else None


def _words(message: Message) -> str:
    return message.text or message.caption or ""


def _entities(message: Message) -> tuple[MessageEntity, ...]:
    return message.entities or message.caption_entities


def _command(message: Message) -> str:
    """As it was written, with the bot's name if it has one; empty where there is none."""
    first = next(iter(_entities(message)), None)
    if first is None or first.type != MessageEntity.BOT_COMMAND or first.offset:
        return ""
    return _cut(_words(message), first)[1]


def _is_mention(message: Message, entity: MessageEntity, me: Me) -> bool:
    if entity.type == MessageEntity.TEXT_MENTION:
        return entity.user is not None and entity.user.id == me.id
    if entity.type != MessageEntity.MENTION:
        return False
    return _same(_cut(_words(message), entity)[1].removeprefix("@"), me)


def _is_reply_to(message: Message, me: Me) -> bool:
    replied = message.reply_to_message
    if replied is None or replied.from_user is None or contents.is_topic_root(message):
        return False
    return replied.from_user.id == me.id


def _same(username: str, me: Me) -> bool:
    return bool(username) and username.casefold() == me.username.casefold()


def _without(text: str, entity: MessageEntity) -> str:
    before, _, after = _cut(text, entity)
    return f"{before.rstrip(' ')} {after.lstrip(' ,:')}".strip()


def _cut(text: str, entity: MessageEntity) -> tuple[str, str, str]:
    """Before, of and after the entity, whose place is in UTF-16 units."""
    units = text.encode("utf-16-le", "surrogatepass")
    start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
    before, own, after = (
        part.decode("utf-16-le", "surrogatepass")
        for part in (units[:start], units[start:end], units[end:])
    )
    return before, own, after
