"""Reads what a Slack message holds; pure, and it opens no file."""

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from core.domain.messages import Attachment

_TOKEN = re.compile(r"<([^<>]*)>")
_GONE = frozenset({"tombstone", "hidden_by_limit"})
_UNREADABLE = frozenset({"canvas", "list", "post", "quip", "space"})

Json = Mapping[str, Any]


def readable(text: str) -> str:
    """Slack's tokens as a person sees them (https://docs.slack.dev/messaging/formatting-message-text)."""
    return html.unescape(_TOKEN.sub(_shown, text))


def attachments(message: Json) -> tuple[Attachment, ...]:
    return tuple(map(_attachment, filter(_is_file, _files(message))))


def text_of(message: Json, said: str) -> str:
    """With what can't be read, in words; empty where there is nothing but files or a quotation."""
    lines = [said, *_descriptions(message)]
    text = "\n".join(line for line in lines if line)
    if text or quotation(message) or any(map(_is_file, _files(message))):
        return text
    return f"[a message of a kind I cannot read: {message.get('subtype') or 'unknown'}]"


def quotation(message: Json) -> str:
    """Messages that were shared in this one; other attachments are previews of links."""
    return "\n".join(text for text in _quotations(message) if text)


def _shown(token: re.Match[str]) -> str:
    target, bar, label = token[1].partition("|")
    kind, name = target[:1], target[1:]
    match kind:
        case "@":
            return f"@{label or name}"
        case "#":
            return f"#{label or name}"
        case "!":
            return label or f"@{name.partition('^')[0]}"
        case _:
            address = target.removeprefix("mailto:").removeprefix("tel:")
            same = not bar or label in (address, target.partition("://")[2])
            return address if same else f"{label} ({address})"


def _files(message: Json) -> Iterable[Json]:
    return message.get("files") or ()


def _is_file(file: Json) -> bool:
    return file.get("mode") not in _GONE | _UNREADABLE and file.get("filetype") not in _UNREADABLE


def _attachment(file: Json) -> Attachment:
    mime = str(file.get("mimetype") or "")
    return Attachment(
        kind=_kind(file, mime),
        ref=str(file["id"]),
        name=str(file.get("name") or ""),
        mime=mime,
        size=int(file.get("size") or -1),
    )


def _kind(file: Json, mime: str) -> str:
    if file.get("subtype") == "slack_audio":
        return "voice message"
    kinds = {"image": "photo", "audio": "audio", "video": "video"}
    return kinds.get(mime.partition("/")[0], "document")


def _descriptions(message: Json) -> Iterator[str]:
    for file in _files(message):
        if file.get("mode") in _GONE:
            yield "[a file that Slack does not show any more]"
        elif not _is_file(file):
            kind = file.get("filetype") or file.get("mode")
            named = f", «{file['title']}»" if file.get("title") else ""
            yield f"[a message of a kind I cannot read: {kind}{named}]"


def _quotations(message: Json) -> Iterator[str]:
    for attachment in message.get("attachments") or ():
        if attachment.get("is_share") or attachment.get("is_msg_unfurl"):
            yield readable(str(attachment.get("text") or attachment.get("fallback") or ""))
