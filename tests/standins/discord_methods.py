"""Discord's REST methods, refusing as Discord does; no HTTP here."""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tests.standins.discord_chats import (
    Channel,
    Chats,
    File,
    Message,
    Version,
    channel_json,
    discord_error,
    isotime,
    person_json,
)

Params = dict[str, Any]
Push = Callable[[str, Params, bool], None]
"""Event, its data, and whether it belongs to a DM."""
MAX_TEXT = 2000
MAX_NONCE = 25
NONCE_SECONDS = 300.0
NAME = re.compile(r"[-_a-z0-9]{1,32}")
EPHEMERAL = 64


class Interaction(msgspec.Struct, kw_only=True):
    """`answer` is the first one, `shown` what the person sees now of it, if anything."""

    id: int
    token: str
    person: int
    at: float
    answer: Params | None = None
    shown: str | None = None


class Methods:
    """`typed` are the channels that typing was shown in; `commands` those of the menu."""

    def __init__(self, chats: Chats, push: Push) -> None:
        self.chats = chats
        self.push = push
        self.typed: list[int] = []
        self.commands: list[Params] = []
        self.interactions: dict[str, Interaction] = {}
        self.remaining_sessions = 1000
        self.message_content = False
        self._nonces: dict[str, tuple[float, int, int]] = {}
        self.table: Mapping[str, Callable[[Params], Any]] = {
            "get_me": lambda _: person_json(self.chats.bot),
            "get_application": self._application,
            "get_gateway": self._gateway,
            "create_message": self._create,
            "edit_message": self._edit,
            "delete_message": self._delete,
            "get_message": lambda params: self._json(self._message(params)),
            "get_messages": self._history,
            "typing": lambda params: self.typed.append(self._channel(params).id),
            "create_dm": self._create_dm,
            "put_commands": self._put_commands,
            "get_commands": lambda _: self.commands,
            "callback": self._callback,
            "edit_answer": self._edit_answer,
            "delete_answer": self._delete_answer,
            "cdn": lambda params: self.chats.file(int(params["file_id"])),
        }

    def forget_nonces(self) -> None:
        """The few minutes are over in which a repeated send is known."""
        self._nonces.clear()

    def _application(self, _: Params) -> Params:
        bot = self.chats.bot
        return {
            "id": str(bot.id),
            "name": bot.name,
            "icon": None,
            "description": "",
            "bot_public": True,
            "bot_require_code_grant": False,
            "verify_key": "",
            "flags": 0,
            "owner": person_json(bot),
            "integration_types_config": {"0": {}, "1": {}},
        }

    def _gateway(self, _: Params) -> Params:
        limit = {"total": 1000, "remaining": self.remaining_sessions, "reset_after": 14_400_000}
        url = self.chats.url.replace("http", "ws") + "/gw/"
        return {"url": url, "shards": 1, "session_start_limit": limit | {"max_concurrency": 1}}

    def _create(self, params: Params) -> Params:
        channel = self._channel(params)
        nonce = params.get("nonce")
        if nonce is not None and len(str(nonce)) > MAX_NONCE:
            raise invalid_form("nonce")
        if (known := self._known(nonce)) is not None and params.get("enforce_nonce"):
            return self._json(known) | {"nonce": nonce}
        version = _version(params)
        if not (version.text.strip() or version.files):
            raise discord_error(400, 50006, "Cannot send an empty message")
        message = Message(
            id=self.chats.new_id(),
            channel_id=channel.id,
            author=self.chats.bot,
            versions=(version,),
            nonce=nonce,
            reply_to=_reply_to(channel, params),
        )
        self.chats.store(message)
        if nonce is not None:
            self._nonces[nonce] = (time.monotonic(), channel.id, message.id)
        body = self._json(message) | {"nonce": nonce}
        self.push("MESSAGE_CREATE", body, channel.is_dm)
        return body

    def _known(self, nonce: str | None) -> Message | None:
        at, channel_id, message_id = self._nonces.get(nonce or "", (0.0, 0, 0))
        if time.monotonic() - at > NONCE_SECONDS:
            return None
        channel = self.chats.channels.get(channel_id)
        return channel.messages.get(message_id) if channel else None

    def _edit(self, params: Params) -> Params:
        message = self._message(params)
        if not message.from_bot:
            raise discord_error(403, 50005, "Cannot edit a message authored by another user")
        edited = self.chats.edit(message, _version(params, message.versions[-1]))
        body = self._json(edited)
        self.push("MESSAGE_UPDATE", body, self.chats.channels[message.channel_id].is_dm)
        return body

    def _delete(self, params: Params) -> None:
        message = self._message(params)
        if not message.from_bot:
            raise discord_error(403, 50003, "Cannot execute action on a DM channel")
        del self.chats.channels[message.channel_id].messages[message.id]

    def _history(self, params: Params) -> list[Params]:
        channel = self._channel(params)
        limit = int(params.get("limit", 50))
        if not 1 <= limit <= 100:
            raise invalid_form("limit")
        after = int(params.get("after", 0))
        before = int(params.get("before", 2**63))
        found = [m for m in channel.messages.values() if after < m.id < before]
        page = found[:limit] if after else found[-limit:]
        return [self._json(message) for message in reversed(page)]

    def _create_dm(self, params: Params) -> Params:
        person = self.chats.people.get(int(params["recipient_id"]))
        if person is None:
            raise discord_error(400, 50033, "Invalid Recipient(s)")
        channel = self.chats.open_dm(person)
        return channel_json(self.chats.find(channel.id))

    def _put_commands(self, params: Params) -> list[Params]:
        commands: list[Params] = params["body"]
        for command in commands:
            description = command.get("description", "")
            if not NAME.fullmatch(command["name"]) or not 1 <= len(description) <= 100:
                raise invalid_form("name or description")
        app = {"application_id": str(self.chats.bot.id), "version": "1", "type": 1}
        self.commands = [{"id": str(self.chats.new_id())} | app | c for c in commands]
        return self.commands

    def _callback(self, params: Params) -> Params:
        interaction = self._interaction(params)
        if time.monotonic() - interaction.at > 3:
            raise discord_error(404, 10062, "Unknown interaction")
        if interaction.answer is not None:
            raise discord_error(400, 40060, "Interaction has already been acknowledged.")
        kind = params.get("type")
        if kind not in (4, 5, 6, 7):
            raise invalid_form("type")
        interaction.answer = params
        data: Params = params.get("data") or {}
        interaction.shown = {4: data.get("content"), 5: "…"}.get(kind)
        return {"interaction": {"id": str(interaction.id), "type": 2, "token": interaction.token}}

    def _edit_answer(self, params: Params) -> Params:
        interaction = self._answered(params)
        interaction.shown = params.get("content")
        return {
            "id": str(self.chats.new_id()),
            "channel_id": "0",
            "content": interaction.shown,
            "author": person_json(self.chats.bot),
            "type": 20,
            "flags": EPHEMERAL,
            "timestamp": isotime(time.time()),
        }

    def _delete_answer(self, params: Params) -> None:
        self._answered(params).shown = None

    def _answered(self, params: Params) -> Interaction:
        interaction = self._interaction(params)
        if interaction.answer is None:
            raise discord_error(404, 10015, "Unknown Webhook")
        return interaction

    def _interaction(self, params: Params) -> Interaction:
        found = self.interactions.get(params["interaction_token"])
        if found is None:
            raise discord_error(404, 10062, "Unknown interaction")
        return found

    def _channel(self, params: Params) -> Channel:
        return self.chats.find(int(params["channel_id"]))

    def _message(self, params: Params) -> Message:
        message = self._channel(params).messages.get(int(params["message_id"]))
        if message is None:
            raise discord_error(404, 10008, "Unknown Message")
        return message

    def _json(self, message: Message) -> Params:
        """As REST has it: nobody's nonce, and no guild."""
        return self.chats.message_json(message, all_content=self.message_content)


def invalid_form(field: str) -> Exception:
    return discord_error(400, 50035, f"Invalid Form Body: {field}")


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _version(params: Params, old: Version | None = None) -> Version:
    """What is not named stays as it was; lone surrogates and too much of anything are refused."""
    old = old or Version(0.0, "")
    text = (params.get("content") or "").strip() if "content" in params else old.text
    if utf16_length(text) > MAX_TEXT:
        raise invalid_form("content")
    components = params.get("components", list(old.components))
    if len(components) > 5 or any(not _fits(row) for row in components):
        raise invalid_form("components")
    named: list[Params] = params.get("attachments") or []
    keep = {str(file.get("id")) for file in named}
    kept = [f for f in old.files if "attachments" not in params or str(f.id) in keep]
    files: list[File] = params.get("files", [])
    return Version(time.time(), text, (*kept, *files), tuple(components))


def _fits(row: Params) -> bool:
    buttons = row["components"]
    fit = all(len(b["label"]) <= 80 and 1 <= len(b["custom_id"]) <= 100 for b in buttons)
    return fit and len(buttons) <= 5


def _reply_to(channel: Channel, params: Params) -> int | None:
    reference: Params = params.get("message_reference") or {}
    if not reference:
        return None
    message_id = int(reference["message_id"])
    if message_id in channel.messages:
        return message_id
    if reference.get("fail_if_not_exists", True):
        raise invalid_form("message_reference: Unknown message")
    return None
