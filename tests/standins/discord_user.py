"""A person who talks to the bot in tests and looks at what it shows; it sees no event or call."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from tests.standins.changes import Changes
from tests.standins.discord_chats import (
    ALL_PERMISSIONS,
    GUILD_ID,
    Channel,
    Chats,
    File,
    Message,
    Person,
    Version,
    channel_json,
    discord_error,
    member_json,
    person_json,
)
from tests.standins.discord_gateway import DIRECT_MESSAGES, GUILD_MESSAGES, Gateway
from tests.standins.discord_methods import Interaction, Methods

CLOSED = discord_error(403, 50007, "Cannot send messages to this user").refuse
EVERY_INTERACTION = -1
T = TypeVar("T")


class User:
    """Each act tells the bot by an event, as far as Discord would let it know."""

    def __init__(
        self, person: Person, chats: Chats, gateway: Gateway, methods: Methods, changes: Changes
    ) -> None:
        self._person = person
        self._chats = chats
        self._gateway = gateway
        self._methods = methods
        self._changes = changes

    @property
    def id(self) -> int:
        return self._person.id

    @property
    def dm(self) -> int:
        """The id of the channel of the direct messages."""
        return self._act(lambda: self._chats.open_dm(self._person).id)

    @property
    def chat(self) -> list[Message]:
        """All direct messages that are visible now, in order."""
        return self.sees(self.dm)

    def sees(self, channel_id: int) -> list[Message]:
        with self._changes.lock:
            return list(self._chats.channels[channel_id].messages.values())

    def bot_texts(self, channel_id: int | None = None) -> list[str]:
        seen = self.chat if channel_id is None else self.sees(channel_id)
        return [message.text for message in seen if message.from_bot]

    def says(self, text: str, *, reply_to: int | None = None) -> Message:
        return self.says_in(self.dm, text, reply_to=reply_to)

    def says_in(
        self, channel_id: int, text: str, *, mention: bool = False, reply_to: int | None = None
    ) -> Message:
        said = f"<@{self._chats.bot.id}> {text}" if mention else text
        return self._writes(channel_id, Version(time.time(), said), reply_to=reply_to)

    def sends_file(
        self,
        name: str = "notes.txt",
        data: bytes = b"notes",
        text: str = "",
        content_type: str = "text/plain",
    ) -> Message:
        file = File(self._chats.new_id(), name, data, content_type)
        return self._writes(self.dm, Version(time.time(), text, (file,)))

    def sends_pictures(self, text: str, *pictures: bytes) -> Message:
        """One message with them all."""
        new_id = self._chats.new_id
        files = tuple(
            File(new_id(), f"{n}.png", data, "image/png") for n, data in enumerate(pictures)
        )
        return self._writes(self.dm, Version(time.time(), text, files))

    def sends_voice(self, data: bytes = b"OggS") -> Message:
        file = File(self._chats.new_id(), "voice-message.ogg", data, "audio/ogg", is_voice=True)
        return self._writes(self.dm, Version(time.time(), "", (file,)), extra={"flags": 8192})

    def sends_kind(self, kind: int = 0, text: str = "", **extra: Any) -> Message:
        """A message of a type of Discord's, or with fields of Discord's."""
        return self._writes(self.dm, Version(time.time(), text), kind=kind, extra=extra)

    def edits(self, message: Message, text: str) -> Message:
        def write() -> Message:
            edited = self._chats.edit(message, Version(time.time(), text))
            self._tell("MESSAGE_UPDATE", edited)
            return edited

        return self._act(write)

    def repeats(self, message: Message) -> None:
        self._act(lambda: self._tell("MESSAGE_CREATE", message))

    def deletes(self, message: Message) -> None:
        def write() -> None:
            del self._chats.channels[message.channel_id].messages[message.id]
            data = {"id": str(message.id), "channel_id": str(message.channel_id)}
            self._gateway.push("MESSAGE_DELETE", data, DIRECT_MESSAGES)

        self._act(write)

    def commands(self, name: str, text: str = "", *, channel_id: int | None = None) -> Interaction:
        """By the menu, in the direct messages or in a channel."""
        options = [{"name": "text", "type": 3, "value": text}] if text else []
        data = {"id": "1", "name": name, "type": 1, "options": options}
        return self._interacts(2, channel_id or self.dm, {"data": data})

    def clicks(self, message: Message, label: str) -> Interaction:
        data = {"custom_id": message.buttons[label], "component_type": 2}
        shown = self._chats.message_json(message, all_content=True)
        return self._interacts(3, message.channel_id, {"data": data, "message": shown})

    def closes_dms(self) -> None:
        self._act(lambda: self._chats.open_dm(self._person)).refusal = CLOSED

    def opens_dms(self) -> None:
        self._act(lambda: self._chats.open_dm(self._person)).refusal = None

    def _writes(
        self,
        channel_id: int,
        version: Version,
        *,
        reply_to: int | None = None,
        kind: int = 0,
        extra: dict[str, Any] | None = None,
    ) -> Message:
        def write() -> Message:
            channel = self._chats.channels[channel_id]
            replied = channel.messages.get(reply_to or 0)
            bot = self._chats.bot
            named = f"<@{bot.id}>" in version.text or (replied is not None and replied.from_bot)
            message = Message(
                id=self._chats.new_id(),
                channel_id=channel.id,
                author=self._person,
                versions=(version,),
                type=19 if reply_to else kind,
                reply_to=reply_to,
                mentions=(bot,) if named else (),
                extra=extra or {},
            )
            self._chats.store(message)
            self._tell("MESSAGE_CREATE", message)
            return message

        return self._act(write)

    def _tell(self, event: str, message: Message) -> None:
        channel = self._chats.channels[message.channel_id]
        data = self._chats.message_json(message, all_content=self._methods.message_content)
        if channel.is_dm:
            self._gateway.push(event, data, DIRECT_MESSAGES)
        else:
            data |= {"guild_id": str(GUILD_ID), "member": member_json(self._person)}
            self._gateway.push(event, data, GUILD_MESSAGES)

    def _interacts(self, kind: int, channel_id: int, body: dict[str, Any]) -> Interaction:
        def write() -> Interaction:
            channel = self._chats.channels[channel_id]
            interaction_id = self._chats.new_id()
            made = Interaction(
                id=interaction_id,
                token=f"token-{interaction_id}",
                person=self.id,
                at=time.monotonic(),
            )
            self._methods.interactions[made.token] = made
            data = self._interaction_json(made, channel) | {"type": kind} | body
            self._gateway.push("INTERACTION_CREATE", data, EVERY_INTERACTION)
            return made

        return self._act(write)

    def _interaction_json(self, made: Interaction, channel: Channel) -> dict[str, Any]:
        user = person_json(self._person)
        bot_is_in = channel.refusal is None
        body: dict[str, Any] = {
            "id": str(made.id),
            "application_id": str(self._chats.bot.id),
            "token": made.token,
            "version": 1,
            "channel_id": str(channel.id),
            "channel": channel_json(channel),
            "app_permissions": ALL_PERMISSIONS if bot_is_in else "0",
            "attachment_size_limit": 10 * 2**20,
            "entitlements": [],
            "locale": "en-US",
        }
        if channel.is_dm:
            return body | {"user": user, "context": 1, "authorizing_integration_owners": {"1": "7"}}
        owners = {"0": str(GUILD_ID)} if bot_is_in else {"1": str(self.id)}
        return body | {
            "guild_id": str(GUILD_ID),
            "guild": {"id": str(GUILD_ID), "locale": "en-US", "features": []},
            "member": member_json(self._person),
            "context": 0,
            "authorizing_integration_owners": owners,
        }

    def _act(self, write: Callable[[], T]) -> T:
        with self._changes.lock:
            result = write()
        self._changes.announce()
        return result
