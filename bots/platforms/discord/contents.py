"""Reads what a Discord message holds beside its text; pure, and it opens no file."""

from collections.abc import Iterator

import discord
from discord import MessageType

from core.domain.messages import Attachment

_KINDS = {"image": "photo", "audio": "audio", "video": "video"}
_KNOWN = frozenset(MessageType)
_SPOKEN = (MessageType.default, MessageType.reply)


def attachments(message: discord.Message) -> tuple[Attachment, ...]:
    found = (file for part in (message, *message.message_snapshots) for file in part.attachments)
    return tuple(_attachment(message, file) for file in found)


def description(message: discord.Message) -> str:
    """What is no text and no file, in words; empty for service messages («Ada joined»)."""
    return "\n".join(f"[{line}]" for line in _lines(message))


def forwarded(message: discord.Message) -> str:
    texts = (snapshot.content for snapshot in message.message_snapshots)
    return "\n".join(f"[forwarded] {text}" for text in texts if text)


def quotation(message: discord.Message) -> str:
    """What is replied to, as far as Discord sent it along."""
    replied = message.reference.resolved if message.reference else None
    if message.type is not MessageType.reply or not isinstance(replied, discord.Message):
        return ""
    return replied.content or forwarded(replied) or description(replied)


def is_spoken(message: discord.Message) -> bool:
    """False for what Discord says by itself; a kind that is newer than the SDK may be spoken."""
    return message.type in _SPOKEN or message.type not in _KNOWN


def reference(message: discord.Message, file: discord.Attachment) -> str:
    """Addresses of files end after a day, so a file is found by its message."""
    return f"{message.channel.id}/{message.id}/{file.id}"


def _attachment(message: discord.Message, file: discord.Attachment) -> Attachment:
    mime = (file.content_type or "").partition(";")[0]
    kind = _KINDS.get(mime.partition("/")[0], "document")
    return Attachment(
        kind="voice message" if file.is_voice_message() else kind,
        ref=reference(message, file),
        name=file.filename,
        mime=mime,
        size=file.size,
    )


def _lines(message: discord.Message) -> Iterator[str]:
    for sticker in message.stickers:
        yield f"sticker {sticker.name}"
    if poll := message.poll:
        yield f"poll: {poll.question} {' / '.join(answer.text for answer in poll.answers)}"
    if message.type not in _KNOWN:
        yield f"a message of a kind I cannot read: {message.type.name}"
    elif not _has_anything(message):
        yield "a message of a kind I cannot read"


def _has_anything(message: discord.Message) -> bool:
    snapshots = message.message_snapshots
    things = (message.content, message.attachments, message.stickers, message.poll, snapshots)
    return any(things)
