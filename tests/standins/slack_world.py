"""A workspace as Slack keeps it: people, conversations, messages, files; it knows no HTTP."""

import html
import time
from typing import Any, Literal

import msgspec

from tests.standins.faults import Refuse, RefusedError

TEAM = "T1"
APP = "A1"
BOT_USER = "UBOT"
BOT_ID = "B1"

Kind = Literal["im", "channel", "group", "mpim"]
Json = dict[str, Any]


class Person(msgspec.Struct, frozen=True):
    id: str
    name: str


class File(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    mimetype: str
    data: bytes


class Message(msgspec.Struct, kw_only=True):
    """As Slack keeps it. ``text`` is mrkdwn, escaped; an open stream has its own ``stream``."""

    ts: str
    channel: str
    user: str
    text: str = ""
    blocks: list[Json] | None = None
    thread_ts: str = ""
    subtype: str = ""
    files: tuple[File, ...] = ()
    metadata: Json | None = None
    edits: int = 0
    client_msg_id: str = ""
    streaming: bool = False
    extra: Json = msgspec.field(default_factory=dict[str, Any])

    @property
    def from_bot(self) -> bool:
        return self.user == BOT_USER

    @property
    def shown(self) -> str:
        """What a person reads."""
        texts = [words for block in self.blocks or [] if (words := _words(block))]
        return "\n".join(texts) if texts else html.unescape(self.text)

    @property
    def buttons(self) -> list[Json]:
        actions = [block for block in self.blocks or [] if block["type"] == "actions"]
        return [element for block in actions for element in block["elements"]]

    @property
    def is_reply(self) -> bool:
        return self.thread_ts not in ("", self.ts)


class Channel(msgspec.Struct, kw_only=True):
    """``refusal`` is what the bot is told when it writes there."""

    id: str
    kind: Kind
    name: str = ""
    user: str = ""
    has_bot: bool = True
    refusal: Refuse | None = None
    messages: dict[str, Message] = msgspec.field(default_factory=dict[str, Message])


class Workspace:
    """Callers hold the stand-in's lock."""

    def __init__(self) -> None:
        self.people: dict[str, Person] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, File] = {}
        self.address = ""
        self.ahead = 0.0
        self._last = 0

    def find(self, channel_id: Any, *, writing: bool = False) -> Channel:
        """For the bot's calls: raises RefusedError where it can't be."""
        channel = self.channels.get(channel_id) if isinstance(channel_id, str) else None
        if channel is None:
            raise refused("channel_not_found")
        if not channel.has_bot:
            raise refused("not_in_channel" if channel.kind == "channel" else "channel_not_found")
        if writing and channel.refusal is not None:
            raise RefusedError(channel.refusal)
        return channel

    def message(self, channel: Channel, ts: Any) -> Message:
        message = channel.messages.get(str(ts))
        if message is None:
            raise refused("message_not_found")
        return message

    def direct(self, user: str) -> Channel:
        return self.channels.setdefault(f"D{user}", Channel(id=f"D{user}", kind="im", user=user))

    def now(self) -> float:
        """Slack's own time, in seconds."""
        return time.time() + self.ahead

    def timestamp(self) -> str:
        """Ever later; in microseconds, as Slack's are unique within a channel."""
        self._last = max(self._last + 1, int(self.now() * 1_000_000))
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def post(self, channel: Channel, user: str, text: str, **fields: Any) -> Message:
        message = Message(ts=self.timestamp(), channel=channel.id, user=user, text=text, **fields)
        channel.messages[message.ts] = message
        return message

    def keep_file(self, name: str, mimetype: str, data: bytes) -> File:
        file = File(id=f"F{len(self.files) + 1}", name=name, mimetype=mimetype, data=data)
        self.files[file.id] = file
        return file

    def message_json(self, message: Message) -> Json:
        replies = [m.ts for m in self._beside(message) if m.is_reply and m.thread_ts == message.ts]
        fields: Json = {
            "type": "message",
            "ts": message.ts,
            "user": message.user,
            "team": TEAM,
            "text": message.text,
            "blocks": message.blocks,
            "subtype": message.subtype or None,
            "thread_ts": message.thread_ts or (message.ts if replies else None),
            "reply_count": len(replies) or None,
            "latest_reply": max(replies, default=None),
            "client_msg_id": message.client_msg_id or None,
            "files": [self.file_json(file) for file in message.files] or None,
            "metadata": message.metadata,
            "edited": {"user": message.user, "ts": message.ts} if message.edits else None,
            **({"bot_id": BOT_ID, "app_id": APP} if message.from_bot else {}),
            **message.extra,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _beside(self, message: Message) -> list[Message]:
        return list(self.channels[message.channel].messages.values())

    def file_json(self, file: File) -> Json:
        url = f"{self.address}/files-pri/{TEAM}-{file.id}/{file.name}"
        return {
            "id": file.id,
            "name": file.name,
            "mimetype": file.mimetype,
            "filetype": file.name.rpartition(".")[2],
            "size": len(file.data),
            "mode": "hosted",
            "url_private": url,
            "url_private_download": url,
        }


def refused(error: str) -> RefusedError:
    return RefusedError(slack_error(error))


def slack_error(error: str) -> Refuse:
    """As Slack says no: a 200 with ``{"ok": false}``."""
    return Refuse(200, error)


def _words(block: Json) -> str:
    match block:
        case {"type": "markdown", "text": str(text)}:
            return text
        case {"type": "section", "text": {"text": str(text)}}:
            return html.unescape(text)
        case _:
            return ""
