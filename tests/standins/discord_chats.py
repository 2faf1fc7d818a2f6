"""Channels, people and messages as Discord keeps them; it knows no HTTP and no gateway."""

import time
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from tests.standins.faults import Refuse, RefusedError

DISCORD_EPOCH_MS = 1_420_070_400_000
GUILD_ID = 900
JOINED = "2026-01-01T00:00:00+00:00"
Kind = Literal["dm", "text", "thread"]
TYPES: dict[Kind, int] = {"text": 0, "dm": 1, "thread": 11}
ALL_PERMISSIONS = str(2**50 - 1)


class Person(msgspec.Struct, frozen=True):
    id: int
    name: str
    is_bot: bool = False


class File(msgspec.Struct, frozen=True):
    id: int
    name: str
    data: bytes
    content_type: str
    is_voice: bool = False

    @property
    def text(self) -> str:
        return self.data.decode()


class Version(msgspec.Struct, frozen=True):
    """`at` is Unix time in seconds."""

    at: float
    text: str
    files: tuple[File, ...] = ()
    components: tuple[Any, ...] = ()


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """As a person sees it; an edited one has several versions, the newest last.

    `nonce` is kept for repeated sends alone: Discord does not give it out with the history. `extra`
    is whatever else Discord says of it.
    """

    id: int
    channel_id: int
    author: Person
    versions: tuple[Version, ...]
    type: int = 0
    nonce: str | None = None
    reply_to: int | None = None
    mentions: tuple[Person, ...] = ()
    extra: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @property
    def from_bot(self) -> bool:
        return self.author.is_bot

    @property
    def text(self) -> str:
        return self.versions[-1].text

    @property
    def files(self) -> tuple[File, ...]:
        return self.versions[-1].files

    @property
    def buttons(self) -> dict[str, str]:
        """Their ids by their labels."""
        rows: tuple[dict[str, Any], ...] = self.versions[-1].components
        return {b["label"]: b["custom_id"] for row in rows for b in row["components"]}

    @property
    def whole(self) -> str:
        """What a person reads who opens the file, too."""
        return "".join(file.text for file in self.files) or self.text


class Channel(msgspec.Struct, kw_only=True):
    """`refusal` is what every call for it is told; a DM has a `person`."""

    id: int
    kind: Kind
    parent_id: int | None = None
    person: Person | None = None
    messages: dict[int, Message] = msgspec.field(default_factory=dict[int, Message])
    refusal: Refuse | None = None

    @property
    def is_dm(self) -> bool:
        return self.kind == "dm"


def discord_error(status: int, code: int, text: str) -> RefusedError:
    return RefusedError(Refuse(status, text, parameters={"code": code}))


class Chats:
    """All that is written and seen; callers hold the stand-in's lock."""

    def __init__(self, bot: Person) -> None:
        self.bot = bot
        self.url = ""
        self.seconds_ago = 0.0
        """How long ago what is made now was made."""
        self.people: dict[int, Person] = {bot.id: bot}
        self.channels: dict[int, Channel] = {}
        self._last_id = 0

    def new_id(self) -> int:
        """A snowflake: its time is that of now."""
        now = int((time.time() - self.seconds_ago) * 1000) - DISCORD_EPOCH_MS
        self._last_id = max(self._last_id + 1, now << 22)
        return self._last_id

    def find(self, channel_id: int) -> Channel:
        """For the bot's calls: raises RefusedError when it can't be there."""
        channel = self.channels.get(channel_id)
        if channel is None:
            raise discord_error(404, 10003, "Unknown Channel")
        if channel.refusal is not None:
            raise RefusedError(channel.refusal)
        return channel

    def open_dm(self, person: Person, channel_id: int | None = None) -> Channel:
        for channel in self.channels.values():
            if channel.person == person:
                return channel
        channel = Channel(id=channel_id or self.new_id(), kind="dm", person=person)
        self.channels[channel.id] = channel
        return channel

    def store(self, message: Message) -> Message:
        self.channels[message.channel_id].messages[message.id] = message
        return message

    def edit(self, message: Message, version: Version) -> Message:
        edited = msgspec.structs.replace(message, versions=(*message.versions, version))
        return self.store(edited)

    def file(self, file_id: int) -> File:
        for channel in self.channels.values():
            for message in channel.messages.values():
                for file in message.files:
                    if file.id == file_id:
                        return file
        raise discord_error(404, 0, "404: Not Found")

    def message_json(self, message: Message, *, all_content: bool) -> dict[str, Any]:
        channel = self.channels[message.channel_id]
        seen = all_content or channel.is_dm or self.bot in (message.author, *message.mentions)
        version = message.versions[-1]
        first, *edits = message.versions
        edited = isotime(version.at) if edits else None
        body: dict[str, Any] = {
            "id": str(message.id),
            "channel_id": str(message.channel_id),
            "author": person_json(message.author),
            "content": version.text if seen else "",
            "timestamp": isotime(first.at),
            "edited_timestamp": edited,
            "tts": False,
            "mention_everyone": False,
            "mentions": [person_json(person) for person in message.mentions],
            "mention_roles": [],
            "attachments": [self._file_json(message, f) for f in version.files if seen],
            "embeds": [],
            "components": list(version.components) if seen else [],
            "pinned": False,
            "type": message.type,
            "flags": 0,
        }
        if message.reply_to is not None:
            body |= self._reference(channel, message.reply_to, all_content=all_content)
        return body | message.extra

    def _reference(self, channel: Channel, message_id: int, *, all_content: bool) -> dict[str, Any]:
        replied = channel.messages.get(message_id)
        shown = self.message_json(replied, all_content=all_content) if replied else None
        reference = {"type": 0, "message_id": str(message_id), "channel_id": str(channel.id)}
        return {"message_reference": reference, "referenced_message": shown}

    def _file_json(self, message: Message, file: File) -> dict[str, Any]:
        url = f"{self.url}/cdn/attachments/{message.channel_id}/{file.id}/{file.name}"
        voice = {"duration_secs": 1.5, "waveform": "AAAA"} if file.is_voice else {}
        return voice | {
            "id": str(file.id),
            "filename": file.name,
            "size": len(file.data),
            "url": url,
            "proxy_url": url,
            "content_type": file.content_type,
        }


def person_json(person: Person) -> dict[str, Any]:
    return {
        "id": str(person.id),
        "username": person.name.casefold(),
        "global_name": None if person.is_bot else person.name,
        "discriminator": "0",
        "avatar": None,
        "bot": person.is_bot,
    }


def member_json(person: Person) -> dict[str, Any]:
    body: dict[str, Any] = {"roles": [], "joined_at": JOINED, "permissions": ALL_PERMISSIONS}
    return body | {"user": person_json(person), "deaf": False, "mute": False, "flags": 0}


def channel_json(channel: Channel) -> dict[str, Any]:
    body: dict[str, Any] = {"id": str(channel.id), "type": TYPES[channel.kind]}
    if channel.person is not None:
        return body | {"recipients": [person_json(channel.person)], "last_message_id": None}
    body |= {"guild_id": str(GUILD_ID), "name": f"channel-{channel.id}", "position": 0}
    if channel.parent_id is None:
        return body | {"permission_overwrites": [], "parent_id": None, "nsfw": False}
    metadata = {"archived": False, "auto_archive_duration": 1440, "archive_timestamp": JOINED}
    return body | {
        "parent_id": str(channel.parent_id),
        "owner_id": "1",
        "message_count": len(channel.messages),
        "member_count": 1,
        "thread_metadata": metadata | {"locked": False},
    }


def guild_json(chats: Chats) -> dict[str, Any]:
    inside = [channel for channel in chats.channels.values() if not channel.is_dm]
    return {
        "id": str(GUILD_ID),
        "name": "Guild",
        "owner_id": "1",
        "unavailable": False,
        "member_count": len(chats.people),
        "roles": [],
        "emojis": [],
        "features": [],
        "members": [member_json(chats.bot)],
        "channels": [channel_json(c) for c in inside if c.parent_id is None],
        "threads": [channel_json(c) for c in inside if c.parent_id is not None],
    }


def isotime(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
