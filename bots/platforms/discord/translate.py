"""Turns a Discord message into an inbound one, or into nothing by a stated rule; pure.

Not for us are: edits (the message was answered as it was first sent), bots and webhooks, what
Discord says by itself («Ada joined»), and outside of direct messages whatever does not mention us
or answer us. A thread is a channel of its own, at Discord and here.
"""

import re

import discord

from bots.platforms.discord import contents
from core.domain.keys import Address, ChatType
from core.domain.messages import Inbound


def inbound(message: discord.Message, me: int, chat_type: ChatType) -> Inbound | None:
    if message.author.bot or message.webhook_id or not contents.is_spoken(message):
        return None
    said = message.content if chat_type == "dm" else _addressed(message, me)
    if said is None:
        return None
    return Inbound(
        address=Address(
            platform="discord",
            account=str(me),
            chat=str(message.channel.id),
            chat_type=chat_type,
            reply_to=str(message.id),
        ),
        update_id=str(message.id),
        user=str(message.author.id),
        user_name=name_of(message.author),
        text=_text(message, said),
        sent_at=message.created_at,
        message_id=str(message.id),
        attachments=contents.attachments(message),
        quote=contents.quotation(message),
    )


def name_of(person: discord.abc.User) -> str:
    """The same in every guild, and in the history, which knows no nicknames."""
    return person.global_name or person.name


def _addressed(message: discord.Message, me: int) -> str | None:
    """None when it is not for us; else without the mention of us."""
    if all(person.id != me for person in message.mentions):
        return None
    found = re.search(rf"<@!?{me}>", message.content)
    if found is None:
        return message.content
    before, after = message.content[: found.start()], message.content[found.end() :]
    said = f"{before.rstrip(' ')} {after.lstrip(' ,:')}".strip()
    return said or message.content


def _text(message: discord.Message, said: str) -> str:
    """A command stays alone, or it would be none."""
    if said.startswith("/"):
        return said
    for person in message.mentions:
        said = re.sub(rf"<@!?{person.id}>", "@" + person.name, said)
    content = [said, contents.forwarded(message), contents.description(message)]
    return "\n".join(line for line in content if line)
