"""Telegram's Bot API for tests, strict as Telegram is; it never parses HTML or Markdown.

async with TelegramStandIn() as tg:      # bot: tg.token, tg.url + "/bot", tg.url + "/file/bot"
    ada = tg.user(7, "Ada")
    ada.says("hello")
    await tg.wait_for(lambda: ada.bot_texts())
    tg.faults.next("sendMessage", StoreThenCut())
"""

import json
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from tests.standins.base import Call, StandIn
from tests.standins.faults import Refuse, RefusedError
from tests.standins.telegram_chats import BOT_NAME, Chat, Chats, Person, Version, now
from tests.standins.telegram_flood import FloodLimits
from tests.standins.telegram_methods import BotMethods
from tests.standins.telegram_updates import Updates
from tests.standins.telegram_user import User

DOWNLOAD = "file"
TOKEN = "123456:stand-in-token"
UPGRADED = "Bad Request: group chat was upgraded to a supergroup chat"
KICKED = Refuse(403, "Forbidden: bot was kicked from the supergroup chat")
JSON_FIELDS = frozenset(
    {"allowed_updates", "caption_entities", "chat_id", "commands", "draft_id"}
    | {"drop_pending_updates", "entities", "limit", "message_id", "message_thread_id", "offset"}
    | {"reply_markup", "reply_parameters", "scope", "timeout"}
)


class TelegramStandIn(StandIn):
    """One bot. `updates`, `methods` and `chats` show what Telegram itself would know. `url_for`
    gives several callers addresses of their own, so that it is seen who did what."""

    def __init__(self, token: str = TOKEN) -> None:
        super().__init__()
        self.token = token
        self.bot = Person(123456, "Stillhere", is_bot=True, username=BOT_NAME)
        self.chats = Chats(self.bot)
        self.methods = BotMethods(self.chats)
        self.updates = Updates(self)
        self._users: dict[int, User] = {}
        self._revoked = False

    def url_for(self, who: str) -> str:
        return f"{self.url}/for/{who}"

    def user(self, user_id: int, first_name: str = "Ada") -> User:
        """The same person for the same id."""
        if user_id not in self._users:
            person = Person(user_id, first_name)
            with self.changes.lock:
                self.chats.people[user_id] = person
            self._users[user_id] = User(
                person, self.chats, self.updates, self.methods, self.changes
            )
        return self._users[user_id]

    def group(
        self,
        chat_id: int,
        title: str = "Group",
        *,
        forum: bool = False,
        privacy: bool = True,
        kind: str = "supergroup",
    ) -> Chat:
        """A supergroup, or «group», that the bot is in; its id is negative."""
        chat = Chat(id=chat_id, kind=kind, title=title, forum=forum, privacy=privacy)
        with self.changes.lock:
            self.chats.chats[chat_id] = chat
        return chat

    def kicks_bot(self, chat_id: int) -> None:
        with self.changes.lock:
            self.chats.chats[chat_id].refusal = KICKED

    def upgrades(self, chat_id: int, new_id: int, by: User) -> Chat:
        """The group becomes a supergroup, which both chats say."""
        with self.changes.lock:
            old = self.chats.chats[chat_id]
            new = Chat(id=new_id, kind="supergroup", title=old.title, privacy=old.privacy)
            self.chats.chats[new_id] = new
            for chat, word in (
                (old, {"migrate_to_chat_id": new_id}),
                (new, {"migrate_from_chat_id": chat_id}),
            ):
                told = self.chats.post(chat, self.chats.people[by.id], Version(now(), ""))
                self.updates.add("message", self.chats.message_json(told) | word)
            old.refusal = Refuse(400, UPGRADED, parameters={"migrate_to_chat_id": new_id})
        self.changes.announce()
        return new

    def redeliver(self, update_id: int) -> None:
        """The same update once more, confirmed or not."""
        with self.changes.lock:
            self.updates.again(update_id)
        self.changes.announce()

    def limit_floods(self, limits: FloodLimits | None = None) -> FloodLimits:
        self.methods.limits = limits or FloodLimits()
        return self.methods.limits

    def revoke_token(self) -> None:
        self._revoked = True

    def routes(self) -> Iterable[web.RouteDef]:
        yield web.route("*", "/bot{token}/{method}", self._on_method)
        yield web.get("/file/bot{token}/{path:.+}", self._on_download)
        yield web.route("*", "/for/{who}/bot{token}/{method}", self._on_method)
        yield web.get("/for/{who}/file/bot{token}/{path:.+}", self._on_download)

    async def work(self) -> None:
        await self.updates.deliver()

    async def act(self, call: Call) -> Any:
        if self._revoked or call.params["token"] != self.token:
            raise RefusedError(Refuse(401, "Unauthorized"))
        if call.method == "getUpdates":
            return await self.updates.poll(call)
        with self.changes.lock:
            return self._act_at_once(call)

    async def answer(self, call: Call, request: web.Request) -> web.StreamResponse:
        if call.method == DOWNLOAD:
            return web.Response(body=call.effect)
        return web.json_response({"ok": True, "result": call.effect})

    def refusal(self, refuse: Refuse) -> web.Response:
        parameters = dict(refuse.parameters)
        if refuse.retry_after is not None:
            parameters["retry_after"] = refuse.retry_after
        body = {"ok": False, "error_code": refuse.status, "description": refuse.text}
        body |= {"parameters": parameters} if parameters else {}
        return web.json_response(body, status=refuse.status)

    def _act_at_once(self, call: Call) -> Any:
        match call.method:
            case "setWebhook":
                return self.updates.set_webhook(call.params)
            case "deleteWebhook":
                return self.updates.delete_webhook(call.params)
            case "getWebhookInfo":
                return self.updates.webhook_info(call.params)
            case "file":
                return self._download(call.params["path"])
            case method if method in self.methods.table:
                return self.methods.table[method](call.params)
            case _:
                raise RefusedError(Refuse(404, "Not Found: method not found"))

    def _download(self, path: str) -> bytes:
        for attachment in self.chats.files.values():
            if attachment.path == path:
                return attachment.data
        raise RefusedError(Refuse(404, "Not Found: file not found"))

    async def _on_method(self, request: web.Request) -> web.StreamResponse:
        params = await self._params(request)
        params["token"] = request.match_info["token"]
        return await self.handle(request, request.match_info["method"], params)

    async def _on_download(self, request: web.Request) -> web.StreamResponse:
        return await self.handle(request, DOWNLOAD, dict(request.match_info))

    async def _params(self, request: web.Request) -> dict[str, Any]:
        """Query, form, multipart or JSON, as Telegram takes them; files become attachments."""
        params: dict[str, Any] = dict(request.query)
        if request.content_type == "application/json":
            return params | await request.json()
        for name, value in (await request.post()).items():
            params[name] = self._upload(value) if isinstance(value, web.FileField) else value
        for name in JSON_FIELDS & params.keys():
            params[name] = parsed(params[name])
        document = params.get("document")
        if isinstance(document, str) and document.startswith("attach://"):
            params["document"] = params.pop(document.removeprefix("attach://"), None)
        return params

    def _upload(self, field: web.FileField) -> Any:
        with self.changes.lock:
            return self.chats.keep_file(
                "document", field.file.read(), field.filename, field.content_type
            )


def parsed(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value
