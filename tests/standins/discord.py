"""Discord for tests, REST and gateway, strict as Discord is; it never asks for permissions.

async with DiscordStandIn() as discord:   # bot: discord.token, discord.api_url, discord.gateway_url
    ada = discord.user(7, "Ada")
    ada.says("hello")
    await discord.wait_for(lambda: ada.bot_texts())
    discord.faults.next("create_message", StoreThenCut())
"""

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from tests.standins.base import Call, StandIn
from tests.standins.discord_chats import (
    Channel,
    Chats,
    File,
    Message,
    Person,
    discord_error,
)
from tests.standins.discord_gateway import DIRECT_MESSAGES, GUILD_MESSAGES, Gateway
from tests.standins.discord_methods import Methods
from tests.standins.discord_user import User
from tests.standins.faults import Refuse

BOT_ID = 123456
TOKEN = "MTIzNDU2.stand-in.token"
API = "/api/v10"
GATEWAY = "gateway"
NOT_IN_GUILD = discord_error(403, 50001, "Missing Access").refuse
OPEN_TO_ALL = frozenset({"callback", "edit_answer", "delete_answer", "cdn"})
ROUTES = (
    ("GET", "/users/@me", "get_me"),
    ("GET", "/oauth2/applications/@me", "get_application"),
    ("GET", "/gateway/bot", "get_gateway"),
    ("POST", "/channels/{channel_id}/messages", "create_message"),
    ("GET", "/channels/{channel_id}/messages", "get_messages"),
    ("GET", "/channels/{channel_id}/messages/{message_id}", "get_message"),
    ("PATCH", "/channels/{channel_id}/messages/{message_id}", "edit_message"),
    ("DELETE", "/channels/{channel_id}/messages/{message_id}", "delete_message"),
    ("POST", "/channels/{channel_id}/typing", "typing"),
    ("POST", "/users/@me/channels", "create_dm"),
    ("PUT", "/applications/{application_id}/commands", "put_commands"),
    ("GET", "/applications/{application_id}/commands", "get_commands"),
    ("POST", "/interactions/{interaction_id}/{interaction_token}/callback", "callback"),
    ("PATCH", "/webhooks/{app}/{interaction_token}/messages/@original", "edit_answer"),
    ("DELETE", "/webhooks/{app}/{interaction_token}/messages/@original", "delete_answer"),
)


class DiscordStandIn(StandIn):
    """One bot and one guild. `gateway`, `methods` and `chats` show what Discord would know."""

    def __init__(self, token: str = TOKEN) -> None:
        super().__init__()
        self.token = token
        self.bot = Person(BOT_ID, "Stillhere", is_bot=True)
        self.chats = Chats(self.bot)
        self.gateway = Gateway(self.chats, self.changes, self._is_token)
        self.methods = Methods(self.chats, self._push)
        self._users: dict[int, User] = {}
        self._revoked = False

    @property
    def api_url(self) -> str:
        return self.url + API

    @property
    def gateway_url(self) -> str:
        return self.url.replace("http", "ws") + "/gw/"

    def start(self) -> None:
        super().start()
        self.chats.url = self.url

    def user(
        self, user_id: int, name: str = "Ada", *, is_bot: bool = False, dm: int | None = None
    ) -> User:
        """The same person for the same id. ``dm`` is the id of the channel of direct messages."""
        if user_id not in self._users:
            person = Person(user_id, name, is_bot)
            with self.changes.lock:
                self.chats.people[user_id] = person
                self.chats.open_dm(person, dm)
            self._users[user_id] = User(
                person, self.chats, self.gateway, self.methods, self.changes
            )
        return self._users[user_id]

    def channel(self, channel_id: int) -> Channel:
        """In the guild."""
        return self._add(Channel(id=channel_id, kind="text"))

    def thread(self, channel_id: int, parent_id: int) -> Channel:
        return self._add(Channel(id=channel_id, kind="thread", parent_id=parent_id))

    def foreign_channel(self, channel_id: int) -> Channel:
        """The bot is not there; people who installed it for themselves may call it."""
        return self._add(Channel(id=channel_id, kind="text", refusal=NOT_IN_GUILD))

    def redeliver(self, message: Message) -> None:
        """The same event once more, as after a RESUME that did not know how far it came."""
        self._users[message.author.id].repeats(message)

    def revoke_token(self) -> None:
        self._revoked = True

    def routes(self) -> Iterable[web.RouteDef]:
        for http_method, path, name in ROUTES:
            yield web.route(http_method, API + path, partial(self._on_method, name))
        yield web.get("/cdn/attachments/{channel_id}/{file_id}/{name}", self._on_download)
        yield web.get("/gw/", self._on_gateway)
        yield web.route("*", "/{rest:.*}", partial(self._on_method, "unknown"))

    async def work(self) -> None:
        await self.changes.until(lambda: False)

    async def act(self, call: Call) -> Any:
        if call.method == GATEWAY:
            return None
        allowed = call.params.pop("authorization", "") == f"Bot {self.token}"
        if call.method not in OPEN_TO_ALL and (self._revoked or not allowed):
            raise discord_error(401, 0, "401: Unauthorized")
        if call.method not in self.methods.table:
            raise discord_error(404, 0, "404: Not Found")
        with self.changes.lock:
            return self.methods.table[call.method](call.params)

    async def answer(self, call: Call, request: web.Request) -> web.StreamResponse:
        if call.method == GATEWAY:
            return await self.gateway.serve(call, request, lambda: self.is_over(call))
        if isinstance(call.effect, File):
            return web.Response(body=call.effect.data, content_type=call.effect.content_type)
        if call.effect is None:
            return web.Response(status=204)
        return as_json(call.effect)

    def refusal(self, refuse: Refuse) -> web.Response:
        """With a `Via` header, without which discord.py takes a 429 for a ban of Cloudflare's."""
        headers = {"Via": "1.1 google"}
        body: dict[str, Any] = {"message": refuse.text, "code": 0} | refuse.parameters
        if refuse.retry_after is not None:
            headers["Retry-After"] = str(refuse.retry_after)
            body |= {"retry_after": float(refuse.retry_after), "global": False}
        return as_json(body, refuse.status, headers)

    def _add(self, channel: Channel) -> Channel:
        with self.changes.lock:
            return self.chats.channels.setdefault(channel.id, channel)

    def _push(self, event: str, data: dict[str, Any], in_dm: bool) -> None:
        guild = {} if in_dm else {"guild_id": "900"}
        self.gateway.push(event, data | guild, DIRECT_MESSAGES if in_dm else GUILD_MESSAGES)

    def _is_token(self, token: str) -> bool:
        return token == self.token and not self._revoked

    async def _on_method(self, name: str, request: web.Request) -> web.StreamResponse:
        params = await self._params(request)
        params["authorization"] = request.headers.get("Authorization", "")
        return await self.handle(request, name, params)

    async def _on_download(self, request: web.Request) -> web.StreamResponse:
        return await self.handle(request, "cdn", dict(request.match_info))

    async def _on_gateway(self, request: web.Request) -> web.StreamResponse:
        return await self.handle(request, GATEWAY, dict(request.query))

    async def _params(self, request: web.Request) -> dict[str, Any]:
        """Query, JSON, or multipart with `payload_json` and `files[n]`; ids from the path."""
        params: dict[str, Any] = dict(request.query)
        if request.content_type == "application/json":
            body = msgspec.json.decode(await request.read())
            params |= body if isinstance(body, dict) else {"body": body}
        elif request.content_type == "multipart/form-data":
            form = await request.post()
            params |= json.loads(str(form["payload_json"]))
            fields = [f for f in form.values() if isinstance(f, web.FileField)]
            params["files"] = [self._upload(field) for field in fields]
        return params | dict(request.match_info)

    def _upload(self, field: web.FileField) -> File:
        with self.changes.lock:
            file_id = self.chats.new_id()
        return File(file_id, field.filename, field.file.read(), field.content_type)


def as_json(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """With no charset in the type, or discord.py takes the body for a text."""
    return web.Response(
        status=status,
        body=json.dumps(body).encode(),
        content_type="application/json",
        headers=headers,
    )
