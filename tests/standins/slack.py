"""Slack for tests, strict as Slack is: Web API, Socket Mode, events over HTTP.

async with SlackStandIn() as slack:     # SLACK_API_URL = slack.api_url
    ada = slack.user("U7", "Ada")
    ada.says("hello")
    await slack.wait_for(lambda: ada.bot_texts())
    slack.faults.next("chat.postMessage", StoreThenCut())
"""

import asyncio
import json
from collections.abc import Iterable
from email.utils import formatdate
from typing import Any

import aiohttp
from aiohttp import web

from tests.standins.base import Call, StandIn
from tests.standins.faults import Refuse, RefusedError
from tests.standins.slack_events import SIGNING_SECRET, Envelope, Events, signed
from tests.standins.slack_methods import SCOPES, WebMethods
from tests.standins.slack_user import User
from tests.standins.slack_world import Channel, Json, Kind, Person, Workspace, refused

BOT_TOKEN = "xoxb-1-stand-in-token"
APP_TOKEN = "xapp-1-stand-in-token"
CONNECT = "apps.connections.open"
SOCKET = "socket"
FILE = "file"
LOGIN_PAGE = "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head></html>"
ERRORS = {429: "ratelimited", 500: "internal_error", 503: "service_unavailable"}


class SlackStandIn(StandIn):
    """One app in one workspace. ``events``, ``methods`` and ``world`` show what Slack would know;
    ``scopes`` are those that the app was granted, None for all."""

    def __init__(self) -> None:
        super().__init__()
        self.bot_token, self.app_token = BOT_TOKEN, APP_TOKEN
        self.signing_secret = SIGNING_SECRET
        self.scopes: frozenset[str] | None = None
        self.world = Workspace()
        self.events = Events(self)
        self.methods = WebMethods(self.world, self._tell)
        self._users: dict[str, User] = {}
        self._refused_tokens: dict[str, str] = {}

    @property
    def api_url(self) -> str:
        return f"{self.url}/api"

    def start(self) -> None:
        super().start()
        self.world.address = self.url

    def user(self, user_id: str, name: str = "Ada") -> User:
        """The same person for the same id."""
        if user_id not in self._users:
            person = Person(user_id, name)
            with self.changes.lock:
                self.world.people[user_id] = person
            self._users[user_id] = User(person, self.world, self.events, self.methods, self.changes)
        return self._users[user_id]

    def channel(
        self,
        channel_id: str,
        name: str = "general",
        *,
        kind: Kind = "channel",
        has_bot: bool = True,
    ) -> Channel:
        channel = Channel(id=channel_id, kind=kind, name=name, has_bot=has_bot)
        with self.changes.lock:
            self.world.channels[channel_id] = channel
        return channel

    def redeliver(self, envelope: Envelope) -> None:
        with self.changes.lock:
            self.events.again(envelope)
        self.changes.announce()

    def refuse_token(self, error: str = "token_revoked", *, app: bool = False) -> None:
        """From now on; sockets that are open stay so until they are dropped."""
        self._refused_tokens[self.app_token if app else self.bot_token] = error

    def accept_tokens(self) -> None:
        self._refused_tokens.clear()

    def ends_streams(self) -> None:
        """Slack closes each stream after a while, and tells nobody."""
        with self.changes.lock:
            for channel in self.world.channels.values():
                for message in channel.messages.values():
                    message.streaming = False

    async def drop_sockets(self) -> None:
        await self._in_loop(self._drop())

    async def refresh_sockets(self) -> None:
        await self._in_loop(self.events.refresh())

    async def verify_url(self, url: str) -> str:
        """What the app answers when its request URL is set up."""
        body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1a"}).encode()
        headers = signed(body) | {"Content-Type": "application/json"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=body, headers=headers) as response,
        ):
            return await response.text()

    def routes(self) -> Iterable[web.RouteDef]:
        yield web.route("*", "/api/{method}", self._on_method)
        yield web.get("/link", self._on_socket)
        yield web.get("/files-pri/{file}/{name}", self._on_file)

    async def work(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self.events.deliver()

    async def act(self, call: Call) -> Any:
        if call.method == SOCKET:
            return None
        with self.changes.lock:
            self._check_token(call)
            self._check_scope(call)
            if call.method == CONNECT:
                return {"url": f"{self.url.replace('http', 'ws')}/link?ticket={call.number}"}
            if call.method == FILE:
                return self._file(call.params["file"])
            method = self.methods.table.get(call.method)
            if method is None:
                raise refused("unknown_method")
            return method(call.params)

    async def answer(self, call: Call, request: web.Request) -> web.StreamResponse:
        if call.method == SOCKET:
            return await self.events.serve(call, request)
        if call.method == FILE:
            return web.Response(body=call.effect)
        headers = {"Date": formatdate(self.world.now(), usegmt=True)}
        return web.json_response({"ok": True} | call.effect, headers=headers)

    def refusal(self, refuse: Refuse) -> web.Response:
        if refuse.text == LOGIN_PAGE:
            return web.Response(text=LOGIN_PAGE, content_type="text/html")
        body = {"ok": False, "error": ERRORS.get(refuse.status, refuse.text)} | refuse.parameters
        headers = {} if refuse.retry_after is None else {"Retry-After": str(refuse.retry_after)}
        return web.json_response(body, status=refuse.status, headers=headers)

    def _tell(self, kind: str, event: Json) -> None:
        self.events.add_event(kind, event)
        self.changes.announce()

    def _check_token(self, call: Call) -> None:
        token = call.params["token"]
        if call.method == FILE and token != self.bot_token:
            raise RefusedError(Refuse(200, LOGIN_PAGE))
        if not token:
            raise refused("not_authed")
        if error := self._refused_tokens.get(token):
            raise refused(error)
        if token not in (self.bot_token, self.app_token):
            raise refused("invalid_auth")
        if (token == self.app_token) != (call.method == CONNECT):
            raise refused("not_allowed_token_type")

    def _check_scope(self, call: Call) -> None:
        needed = SCOPES.get(call.method, frozenset[str]())
        if self.scopes is not None and needed and not needed & self.scopes:
            raise RefusedError(
                Refuse(200, "missing_scope", parameters={"needed": sorted(needed)[0]})
            )

    def _file(self, name: str) -> bytes:
        file = self.world.files.get(name.partition("-")[2])
        if file is None:
            raise RefusedError(Refuse(404, "file_not_found"))
        return file.data

    async def _drop(self) -> None:
        self.events.drop()

    async def _in_loop(self, work: Any) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _on_method(self, request: web.Request) -> web.StreamResponse:
        return await self.handle(request, request.match_info["method"], await _params(request))

    async def _on_socket(self, request: web.Request) -> web.StreamResponse:
        return await self.handle(request, SOCKET, dict(request.query))

    async def _on_file(self, request: web.Request) -> web.StreamResponse:
        params = dict(request.match_info) | {"token": _token(request)}
        return await self.handle(request, FILE, params)


async def _params(request: web.Request) -> Json:
    """Query, form or JSON, as Slack takes them."""
    params: Json = dict(request.query)
    if request.content_type == "application/json":
        params |= await request.json()
    else:
        params |= {name: _parsed(name, value) for name, value in (await request.post()).items()}
    return params | {"token": _token(request)}


def _parsed(name: str, value: Any) -> Any:
    return json.loads(value) if name in ("blocks", "metadata", "chunks") else value


def _token(request: web.Request) -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ")
