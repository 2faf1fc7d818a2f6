"""A person who talks to the bot in tests and looks at what it shows; it sees no update or call."""

import itertools
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from tests.standins.changes import Changes
from tests.standins.faults import Refuse
from tests.standins.telegram_chats import (
    BOT_NAME,
    Attachment,
    Chat,
    Chats,
    Message,
    Person,
    Version,
    now,
    person_json,
)
from tests.standins.telegram_methods import BotMethods
from tests.standins.telegram_text import Entity, utf16_length
from tests.standins.telegram_updates import Updates

BLOCKED = Refuse(403, "Forbidden: bot was blocked by the user")
T = TypeVar("T")
MENTION = f"@{BOT_NAME}"


class User:
    """Each act tells the bot by an update, as far as Telegram would let it know."""

    def __init__(
        self, person: Person, chats: Chats, updates: Updates, methods: BotMethods, changes: Changes
    ) -> None:
        self._person = person
        self._chats = chats
        self._updates = updates
        self._methods = methods
        self._changes = changes
        self._queries = itertools.count(1)

    @property
    def id(self) -> int:
        return self._person.id

    @property
    def chat(self) -> list[Message]:
        """All messages of the private chat that are visible now, in order."""
        return self.sees(self.id)

    def sees(self, chat_id: int) -> list[Message]:
        with self._changes.lock:
            chat = self._chats.chats.get(chat_id)
            return list(chat.messages.values()) if chat else []

    def bot_texts(self, chat_id: int | None = None) -> list[str]:
        seen = self.sees(self.id if chat_id is None else chat_id)
        return [message.text for message in seen if message.from_bot]

    def drafts(self) -> list[str]:
        """All texts that a draft in the private chat has shown, in order."""
        with self._changes.lock:
            return [draft.text for draft in self._methods.drafts if draft.chat_id == self.id]

    def says(
        self, text: str, *, thread_id: int | None = None, reply_to: int | None = None
    ) -> Message:
        """In the private chat; a new `thread_id` opens a topic there."""

        def write() -> Message:
            chat = self._chats.open_private(self._person)
            return self._post(chat, text, thread_id, reply_to)

        return self._act(write)

    def says_in(
        self,
        group_id: int,
        text: str,
        *,
        thread_id: int | None = None,
        mention: bool = False,
        reply_to: int | None = None,
    ) -> Message:
        """With privacy on, the bot is told of commands, mentions and replies to it alone."""
        said = f"{MENTION} {text}" if mention else text
        return self._act(lambda: self._post(self._chats.chats[group_id], said, thread_id, reply_to))

    def sends_photo(self, data: bytes = b"\xff\xd8\xff", caption: str = "") -> Message:
        return self._sends("photo", data, caption, "photo.jpg", "image/jpeg")

    def sends_album(self, *pictures: bytes, caption: str = "") -> tuple[Message, ...]:
        """One message each; the first one has the caption."""
        album = f"album-{next(self._queries)}"
        captions = (caption, *[""] * (len(pictures) - 1))
        return tuple(
            self._sends("photo", data, said, "photo.jpg", "image/jpeg", album)
            for data, said in zip(pictures, captions, strict=True)
        )

    def sends_document(
        self,
        name: str = "notes.txt",
        data: bytes = b"notes",
        caption: str = "",
        mime_type: str = "text/plain",
    ) -> Message:
        return self._sends("document", data, caption, name, mime_type)

    def sends_voice(self, data: bytes = b"OggS", caption: str = "") -> Message:
        return self._sends("voice", data, caption, "voice.ogg", "audio/ogg")

    def sends_kind(self, **fields: Any) -> int | None:
        """A message that is neither text nor file, with Telegram's own fields; the update's id."""

        def write() -> int | None:
            chat = self._chats.open_private(self._person)
            message = self._chats.post(chat, self._person, Version(now(), ""))
            body = self._chats.message_json(message) | fields
            return self._updates.add("message", body)

        return self._act(write)

    def deletes(self, message_id: int, *, chat_id: int | None = None) -> None:
        """Telegram tells no bot of it."""

        def write() -> None:
            message = self._message(message_id, chat_id)
            del self._chats.chats[message.chat_id].messages[message.id]

        self._act(write)

    def edits(self, message_id: int, text: str, *, chat_id: int | None = None) -> Message:
        def write() -> Message:
            message = self._message(message_id, chat_id)
            edited = self._chats.edit(message, Version(now(), text, entities_of(text)))
            return self._tell("edited_message", edited)

        return self._act(write)

    def clicks(
        self, message_id: int, data: str, *, chat_id: int | None = None, in_sight: bool = True
    ) -> str:
        """The id of the query that the bot has to answer; of an old message, out of the bot's
        sight, Telegram tells no more than where it is."""

        def write() -> str:
            message = self._message(message_id, chat_id)
            if data not in buttons_of(message.buttons).values():
                raise AssertionError(f"no button {data!r} on {message.buttons!r}")
            query_id = f"{self.id}-{next(self._queries)}"
            self._methods.query_answers[query_id] = None
            seen = self._chats.message_json(message)
            old = {"chat": seen["chat"], "message_id": message.id, "date": 0}
            body = {
                "id": query_id,
                "from": person_json(self._person),
                "chat_instance": str(message.chat_id),
                "message": seen if in_sight else old,
                "data": data,
            }
            self._updates.add("callback_query", body)
            return query_id

        return self._act(write)

    def blocks_bot(self) -> None:
        self._chats.open_private(self._person).refusal = BLOCKED

    def unblocks_bot(self) -> None:
        self._chats.open_private(self._person).refusal = None

    def _sends(
        self,
        kind: str,
        data: bytes,
        caption: str,
        name: str,
        mime_type: str,
        album: str | None = None,
    ) -> Message:
        def write() -> Message:
            chat = self._chats.open_private(self._person)
            attachment = self._chats.keep_file(kind, data, name, mime_type)
            return self._post(chat, caption, None, None, attachment, album)

        return self._act(write)

    def _post(
        self,
        chat: Chat,
        text: str,
        thread_id: int | None,
        reply_to: int | None,
        attachment: Attachment | None = None,
        album: str | None = None,
    ) -> Message:
        if thread_id is not None and (chat.is_private or chat.forum):
            chat.topics.add(thread_id)
        message = self._chats.post(
            chat,
            self._person,
            Version(now(), text, entities_of(text)),
            thread_id=reply_to if thread_id is None and not chat.is_private else thread_id,
            reply_to=reply_to,
            attachment=attachment,
            album=album,
        )
        return self._tell("message", message)

    def _tell(self, kind: str, message: Message) -> Message:
        chat = self._chats.chats[message.chat_id]
        if not self._bot_may_see(chat, message):
            return message
        update_id = self._updates.add(kind, self._chats.message_json(message))
        return self._chats.store(msgspec.structs.replace(message, update_id=update_id))

    def _bot_may_see(self, chat: Chat, message: Message) -> bool:
        if chat.is_private or not chat.privacy or message.text.startswith("/"):
            return True
        replied = chat.messages.get(message.reply_to or 0)
        return MENTION in message.text or (replied is not None and replied.from_bot)

    def _message(self, message_id: int, chat_id: int | None) -> Message:
        chat = self._chats.chats.get(self.id if chat_id is None else chat_id)
        message = chat.messages.get(message_id) if chat else None
        if message is None:
            raise AssertionError(f"there is no message {message_id} to act on")
        return message

    def _act(self, write: Callable[[], T]) -> T:
        with self._changes.lock:
            result = write()
        self._changes.announce()
        return result


def entities_of(text: str) -> tuple[Entity, ...]:
    """Those that Telegram's apps add by themselves and a bot looks at."""
    found: list[Entity] = []
    if text.startswith("/") and len(text) > 1:
        found.append(Entity("bot_command", 0, utf16_length(text.split(maxsplit=1)[0])))
    if (start := text.find(MENTION)) > 0 or text.startswith(MENTION):
        found.append(Entity("mention", utf16_length(text[:start]), len(MENTION)))
    return tuple(found)


def buttons_of(markup: Any) -> dict[str, str]:
    """By what they show, what they say."""
    keyboard: dict[str, list[list[dict[str, str]]]] = markup or {}
    rows = keyboard.get("inline_keyboard", [])
    return {one["text"]: one.get("callback_data", "") for row in rows for one in row}
