"""The Bot API's methods that write and read chats, refusing as Telegram does; no HTTP here."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from tests.standins.faults import Refuse, RefusedError, too_many
from tests.standins.telegram_chats import (
    Attachment,
    Chat,
    Chats,
    Message,
    Version,
    file_json,
    now,
    person_json,
)
from tests.standins.telegram_flood import FloodLimits
from tests.standins.telegram_text import (
    MAX_CAPTION,
    MAX_TEXT,
    Entity,
    bad_request,
    checked_text,
)

Params = dict[str, Any]
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly "
    "the same as a current content and reply markup of the message"
)
LONGEST_DATA = 64
COMMAND = re.compile(r"[a-z0-9_]{1,32}")
ACTIONS = frozenset(
    {"typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice"}
    | {"upload_document", "choose_sticker", "find_location", "record_video_note"}
    | {"upload_video_note"}
)


class Draft(msgspec.Struct, frozen=True):
    chat_id: int
    draft_id: int
    text: str
    at: float
    thread_id: int | None = None


class BotMethods:
    """`drafts` and `actions` keep all there were; `query_answers` is by callback query id."""

    def __init__(self, chats: Chats) -> None:
        self.chats = chats
        self.limits: FloodLimits | None = None
        self.drafts: list[Draft] = []
        self.actions: list[tuple[int, str]] = []
        self.commands: dict[str, list[dict[str, str]]] = {}
        self.query_answers: dict[str, Params | None] = {}
        self.table: dict[str, Callable[[Params], Any]] = {
            "getMe": self._get_me,
            "sendMessage": self._send_message,
            "sendMessageDraft": self._send_draft,
            "sendDocument": self._send_document,
            "editMessageText": self._edit_text,
            "deleteMessage": self._delete_message,
            "sendChatAction": self._send_action,
            "setMyCommands": self._set_commands,
            "getMyCommands": self._get_commands,
            "answerCallbackQuery": self._answer_query,
            "getFile": self._get_file,
        }

    def _get_me(self, params: Params) -> dict[str, Any]:
        abilities = {"can_join_groups": True, "can_read_all_group_messages": False}
        abilities["has_topics_enabled"] = True
        return person_json(self.chats.bot) | abilities | {"supports_inline_queries": False}

    def _send_message(self, params: Params) -> dict[str, Any]:
        chat = self._chat_for_sending(params)
        text, entities = self._text(params)
        check_buttons(params.get("reply_markup"))
        return self._post(chat, params, text, entities)

    def _send_document(self, params: Params) -> dict[str, Any]:
        chat = self._chat_for_sending(params)
        document = params.get("document")
        if isinstance(document, str):
            document = self.chats.files.get(document)
        if not isinstance(document, Attachment):
            raise bad_request("there is no document in the request")
        caption = params.get("caption") or ""
        text, entities = checked_text(caption, params.get("caption_entities"), MAX_CAPTION)
        return self._post(chat, params, text, entities, document)

    def _send_draft(self, params: Params) -> bool:
        chat = self._chat_for_sending(params)
        text, _ = checked_text(params.get("text") or "", params.get("entities"), MAX_TEXT)
        if not chat.is_private:
            raise bad_request("TEXTDRAFT_PEER_INVALID")
        draft_id = params.get("draft_id")
        if not isinstance(draft_id, int) or draft_id == 0:
            raise bad_request("invalid draft identifier specified")
        self.drafts.append(Draft(chat.id, draft_id, text, now(), params.get("message_thread_id")))
        return True

    def _edit_text(self, params: Params) -> dict[str, Any]:
        chat = self._chat_for_sending(params)
        text, entities = self._text(params)
        check_buttons(params.get("reply_markup"))
        message = self._own_message(chat, params, "edit")
        old = message.versions[-1]
        version = Version(now(), text, entities, params.get("reply_markup"))
        if msgspec.structs.replace(version, at=old.at) == old:
            raise bad_request(NOT_MODIFIED)
        return self.chats.message_json(self.chats.edit(message, version))

    def _delete_message(self, params: Params) -> bool:
        chat = self.chats.find(params.get("chat_id"))
        message = chat.messages.get(params.get("message_id") or 0)
        if message is None:
            raise bad_request("message to delete not found")
        if not message.from_bot and not chat.is_private:
            raise bad_request("message can't be deleted")
        del chat.messages[message.id]
        return True

    def _send_action(self, params: Params) -> bool:
        chat = self._chat_for_sending(params)
        action = params.get("action")
        if action not in ACTIONS:
            raise bad_request("wrong parameter action in request")
        self.actions.append((chat.id, action))
        return True

    def _set_commands(self, params: Params) -> bool:
        commands: list[dict[str, str]] = params.get("commands") or []
        for command in commands:
            if not COMMAND.fullmatch(command["command"]):
                raise bad_request("BOT_COMMAND_INVALID")
            if not 1 <= len(command["description"]) <= 256:
                raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        self.commands[_scope(params)] = commands
        return True

    def _get_commands(self, params: Params) -> list[dict[str, str]]:
        return self.commands.get(_scope(params), [])

    def _answer_query(self, params: Params) -> bool:
        query_id = params.get("callback_query_id")
        if query_id not in self.query_answers:
            raise bad_request(
                "query is too old and response timeout expired or query ID is invalid"
            )
        self.query_answers[query_id] = params
        return True

    def _get_file(self, params: Params) -> dict[str, Any]:
        attachment = self.chats.files.get(params.get("file_id") or "")
        if attachment is None:
            raise bad_request("wrong file_id or the file is temporarily unavailable")
        if len(attachment.data) > self.chats.largest_file:
            raise bad_request("file is too big")
        return file_json(attachment) | {"file_path": attachment.path}

    def _post(
        self,
        chat: Chat,
        params: Params,
        text: str,
        entities: tuple[Entity, ...],
        attachment: Attachment | None = None,
    ) -> dict[str, Any]:
        message = self.chats.post(
            chat,
            self.chats.bot,
            Version(now(), text, entities, params.get("reply_markup")),
            thread_id=params.get("message_thread_id"),
            reply_to=_reply_to(chat, params),
            attachment=attachment,
        )
        return self.chats.message_json(message)

    def _chat_for_sending(self, params: Params) -> Chat:
        chat = self.chats.find(params.get("chat_id"))
        thread_id = params.get("message_thread_id")
        if thread_id is not None and thread_id not in chat.topics:
            raise bad_request("message thread not found")
        if self.limits and (wait := self.limits.seconds_to_wait(chat.id, chat.is_private)):
            raise RefusedError(too_many(wait))
        return chat

    def _text(self, params: Params) -> tuple[str, tuple[Entity, ...]]:
        if params.get("parse_mode"):
            raise RefusedError(Refuse(400, "Bad Request: the stand-in reads entities only"))
        text, entities = checked_text(params.get("text") or "", params.get("entities"), MAX_TEXT)
        if not text:
            raise bad_request("message text is empty")
        return text, entities

    def _own_message(self, chat: Chat, params: Params, verb: str) -> Message:
        message = chat.messages.get(params.get("message_id") or 0)
        if message is None:
            raise bad_request(f"message to {verb} not found")
        if not message.from_bot:
            raise bad_request(f"message can't be {verb}ed")
        return message


def _reply_to(chat: Chat, params: Params) -> int | None:
    reply: Params = params.get("reply_parameters") or {}
    message_id = reply.get("message_id")
    if message_id is None or message_id in chat.messages:
        return message_id
    if reply.get("allow_sending_without_reply"):
        return None
    raise bad_request("message to be replied not found")


def check_buttons(markup: Any) -> None:
    keyboard: dict[str, list[list[dict[str, str]]]] = markup or {}
    for button in [one for row in keyboard.get("inline_keyboard", []) for one in row]:
        if not button.get("text"):
            raise bad_request("text buttons are unallowed in the inline keyboard")
        if not 1 <= len(button.get("callback_data", "").encode()) <= LONGEST_DATA:
            raise bad_request("BUTTON_DATA_INVALID")


def _scope(params: Params) -> str:
    scope = params.get("scope") or {"type": "default"}
    return f"{scope} {params.get('language_code') or ''}"
