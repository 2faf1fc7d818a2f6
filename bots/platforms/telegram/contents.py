"""Reads what a Telegram message holds beside its text; pure, and it opens no file."""

from collections.abc import Iterator

from telegram import (
    Animation,
    Audio,
    Document,
    LivePhoto,
    Message,
    PhotoSize,
    Sticker,
    Video,
    VideoNote,
    Voice,
)
from telegram.constants import MessageType

from core.domain.messages import Attachment

File = Animation | Audio | Document | LivePhoto | PhotoSize | Sticker | Video | VideoNote | Voice

_UNREADABLE = ("checklist", "dice", "game", "giveaway", "invoice", "paid_media", "story")


def attachments(message: Message) -> tuple[Attachment, ...]:
    return tuple(_attachment(kind, file) for kind, file in _files(message) if file is not None)


def description(message: Message) -> str:
    """What is no text and no file, in words; empty for service messages («Ada joined»)."""
    return "\n".join(f"[{line}]" for line in _lines(message))


def quotation(message: Message) -> str:
    """What is replied to, or the part of it that was chosen."""
    replied = message.reply_to_message
    if message.quote is not None:
        return message.quote.text
    if replied is None or is_topic_root(message):
        return ""
    return replied.text or replied.caption or description(replied)


def is_topic_root(message: Message) -> bool:
    """In a topic Telegram makes every message that replies to none a reply to the topic's first."""
    replied = message.reply_to_message
    return (
        replied is not None
        and bool(message.is_topic_message)
        and replied.message_id == message.message_thread_id
    )


def _files(message: Message) -> Iterator[tuple[str, File | None]]:
    yield "photo", max(message.photo, key=lambda size: size.width * size.height, default=None)
    yield "animation", message.animation
    # Telegram names every animation as a document, too.
    yield "document", None if message.animation else message.document
    yield "live photo", message.live_photo
    yield "voice message", message.voice
    yield "audio", message.audio
    yield "video", message.video
    yield "video message", message.video_note
    yield "sticker", message.sticker


def _attachment(kind: str, file: File) -> Attachment:
    size = file.file_size
    return Attachment(
        kind=kind,
        ref=file.file_id,
        name=getattr(file, "file_name", None) or "",
        mime=getattr(file, "mime_type", None) or "",
        size=-1 if size is None else size,
    )


def _lines(message: Message) -> Iterator[str]:
    if message.sticker:
        yield f"sticker {message.sticker.emoji or ''}".strip()
    if venue := message.venue:
        place = f"{venue.location.latitude}, {venue.location.longitude}"
        yield f"place: {venue.title}, {venue.address} ({place})"
    elif message.location:
        yield f"location: {message.location.latitude}, {message.location.longitude}"
    if contact := message.contact:
        name = f"{contact.first_name} {contact.last_name or ''}".strip()
        yield f"contact: {name}, {contact.phone_number}"
    if poll := message.poll:
        yield f"poll: {poll.question} {' / '.join(option.text for option in poll.options)}"
    if unreadable := _unreadable(message):
        yield f"a message of a kind I cannot read: {unreadable}"


def _unreadable(message: Message) -> str:
    """The kind, and for one that is newer than the SDK the names of the fields that it has."""
    for kind in _UNREADABLE:
        if getattr(message, kind, None):
            return kind
    if any(getattr(message, kind.value, None) for kind in MessageType):
        return ""
    return ", ".join(sorted(message.api_kwargs))
