"""Chats, people and messages as Telegram keeps them; it knows no HTTP and no updates."""

import time
from typing import Any

import msgspec

from tests.standins.faults import Refuse, RefusedError
from tests.standins.telegram_text import Entity, bad_request

BOT_NAME = "stillhere_bot"


class Person(msgspec.Struct, frozen=True):
    id: int
    first_name: str
    is_bot: bool = False
    username: str | None = None


class Attachment(msgspec.Struct, frozen=True):
    kind: str
    file_id: str
    data: bytes
    name: str
    mime_type: str

    @property
    def path(self) -> str:
        """Never by its own name, which may be anything."""
        return f"{self.kind}s/{self.file_id}"


class Version(msgspec.Struct, frozen=True):
    """`at` is Unix time in seconds."""

    at: float
    text: str
    entities: tuple[Entity, ...] = ()
    buttons: Any = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """As a person sees it; an edited one has several versions, the newest last.

    `update_id` is the update that told the bot of it, None for the bot's own and unseen ones.
    """

    id: int
    chat_id: int
    sender: Person
    versions: tuple[Version, ...]
    thread_id: int | None = None
    reply_to: int | None = None
    attachment: Attachment | None = None
    album: str | None = None
    update_id: int | None = None

    @property
    def from_bot(self) -> bool:
        return self.sender.is_bot

    @property
    def text(self) -> str:
        return self.versions[-1].text

    @property
    def entities(self) -> tuple[Entity, ...]:
        return self.versions[-1].entities

    @property
    def buttons(self) -> Any:
        return self.versions[-1].buttons

    @property
    def sent_at(self) -> float:
        return self.versions[0].at

    @property
    def edits(self) -> tuple[Version, ...]:
        return self.versions[1:]


class Chat(msgspec.Struct, kw_only=True):
    """`topics` are the thread ids that exist, `refusal` what every call for it is told."""

    id: int
    kind: str
    title: str = ""
    forum: bool = False
    privacy: bool = True
    topics: set[int] = msgspec.field(default_factory=set[int])
    messages: dict[int, Message] = msgspec.field(default_factory=dict[int, Message])
    refusal: Refuse | None = None

    @property
    def is_private(self) -> bool:
        return self.kind == "private"


class Chats:
    """All that is written and seen; callers hold the stand-in's lock."""

    def __init__(self, bot: Person) -> None:
        self.bot = bot
        self.people: dict[int, Person] = {bot.id: bot}
        self.chats: dict[int, Chat] = {}
        self.files: dict[str, Attachment] = {}
        self.largest_file = 20_000_000
        """Bytes that the public servers hand out."""
        self._last_message_id = 0

    def find(self, chat_id: Any) -> Chat:
        """For the bot's calls: raises RefusedError when it can't write there."""
        chat = self.chats.get(chat_id) if isinstance(chat_id, int) else None
        if chat is None:
            raise bad_request("chat not found")
        if chat.refusal is not None:
            raise RefusedError(chat.refusal)
        return chat

    def open_private(self, person: Person) -> Chat:
        return self.chats.setdefault(person.id, Chat(id=person.id, kind="private"))

    def post(
        self,
        chat: Chat,
        sender: Person,
        version: Version,
        *,
        thread_id: int | None = None,
        reply_to: int | None = None,
        attachment: Attachment | None = None,
        album: str | None = None,
    ) -> Message:
        self._last_message_id += 1
        message = Message(
            id=self._last_message_id,
            chat_id=chat.id,
            sender=sender,
            versions=(version,),
            thread_id=thread_id,
            reply_to=reply_to,
            attachment=attachment,
            album=album,
        )
        chat.messages[message.id] = message
        return message

    def edit(self, message: Message, version: Version) -> Message:
        edited = msgspec.structs.replace(message, versions=(*message.versions, version))
        return self.store(edited)

    def store(self, message: Message) -> Message:
        self.chats[message.chat_id].messages[message.id] = message
        return message

    def keep_file(self, kind: str, data: bytes, name: str, mime_type: str) -> Attachment:
        file_id = f"{kind}-{len(self.files) + 1}"
        self.files[file_id] = Attachment(kind, file_id, data, name, mime_type)
        return self.files[file_id]

    def message_json(self, message: Message, *, with_reply: bool = True) -> dict[str, Any]:
        chat = self.chats[message.chat_id]
        newest = message.versions[-1]
        reply = chat.messages.get(message.reply_to or 0) if with_reply else None
        words = ("caption", "caption_entities") if message.attachment else ("text", "entities")
        fields = {
            "message_id": message.id,
            "date": int(message.sent_at),
            "chat": self.chat_json(chat),
            "from": person_json(message.sender),
            "edit_date": int(newest.at) if message.edits else None,
            words[0]: newest.text or None,
            words[1]: msgspec.to_builtins(newest.entities) or None,
            "media_group_id": message.album,
            "message_thread_id": message.thread_id,
            "is_topic_message": message.thread_id in chat.topics or None,
            "reply_markup": newest.buttons,
            "reply_to_message": self.message_json(reply, with_reply=False) if reply else None,
            **attachment_json(message.attachment),
        }
        return {name: value for name, value in fields.items() if value is not None}

    def chat_json(self, chat: Chat) -> dict[str, Any]:
        if chat.is_private:
            name = self.people[chat.id].first_name
            return {"id": chat.id, "type": "private", "first_name": name}
        return {"id": chat.id, "type": chat.kind, "title": chat.title, "is_forum": chat.forum}


def now() -> float:
    return time.time()


def person_json(person: Person) -> dict[str, Any]:
    fields = msgspec.to_builtins(person)
    return {name: value for name, value in fields.items() if value is not None}


def attachment_json(attachment: Attachment | None) -> dict[str, Any]:
    match attachment:
        case None:
            return {}
        case Attachment(kind="photo"):
            return {"photo": [file_json(attachment) | {"width": 90, "height": 90}]}
        case Attachment(kind="voice", mime_type=mime_type):
            return {"voice": file_json(attachment) | {"duration": 1, "mime_type": mime_type}}
        case Attachment(name=name, mime_type=mime_type):
            names = {"file_name": name, "mime_type": mime_type}
            return {"document": file_json(attachment) | names}


def file_json(attachment: Attachment) -> dict[str, Any]:
    return {
        "file_id": attachment.file_id,
        "file_unique_id": f"unique-{attachment.file_id}",
        "file_size": len(attachment.data),
    }
