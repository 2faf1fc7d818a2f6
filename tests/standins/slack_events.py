"""How Slack tells an app what happened: by Socket Mode or by HTTP, again until it is taken.

An event is brought at most four times (docs.slack.dev/apis/events-api): what no one took then, or
while no socket was open, is lost; it stays in the conversation's history.
"""

import asyncio
import hashlib
import hmac
import json
import time
from typing import Any, Literal
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp import WSMsgType, web

from tests.standins.base import Call, StandIn
from tests.standins.slack_world import APP, BOT_USER, TEAM, Json

MOST_DELIVERIES = 4
SIGNING_SECRET = "stand-in-signing-secret"
Kind = Literal["events_api", "slash_commands", "interactive"]


class Envelope(msgspec.Struct, kw_only=True):
    """``due`` is monotonic time; ``answer`` what the app said when it took it."""

    id: str
    kind: Kind
    payload: Json
    deliveries: int = 0
    due: float = 0.0
    state: Literal["open", "taken", "lost"] = "open"
    answer: Any = None
    sent_to: list[int] = msgspec.field(default_factory=list[int])


class Socket(msgspec.Struct, kw_only=True):
    """One that is silent takes no ping, and brings nothing."""

    number: int
    ws: web.WebSocketResponse
    transport: asyncio.Transport | None
    silent: bool = False
    closing: bool = False


class Events:
    """``ack_seconds`` is how long Slack waits before it brings something again; ``request_url``
    chooses HTTP. ``posts`` are the statuses that the app answered with."""

    def __init__(self, stand_in: StandIn) -> None:
        self.ack_seconds = 3.0
        self.request_url = ""
        self.subscribed: frozenset[str] | None = None
        self.envelopes: list[Envelope] = []
        self.sockets: dict[int, Socket] = {}
        self.posts: list[int | str] = []
        self._stand_in = stand_in
        self._connections = 0
        self._next = 0

    @property
    def taken(self) -> list[Json]:
        return [envelope.payload for envelope in self.envelopes if envelope.state == "taken"]

    @property
    def lost(self) -> list[Json]:
        return [envelope.payload for envelope in self.envelopes if envelope.state == "lost"]

    @property
    def open_ones(self) -> list[Envelope]:
        return [envelope for envelope in self.envelopes if envelope.state == "open"]

    def add_event(self, kind: str, event: Json) -> Envelope | None:
        """None when the app did not ask for it; message events are asked for by place."""
        if self.subscribed is not None and _subscription(kind, event) not in self.subscribed:
            return None
        number = len(self.envelopes) + 1
        authorization = {"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}
        payload = {
            "token": "verification",
            "team_id": TEAM,
            "api_app_id": APP,
            "type": "event_callback",
            "event": {"event_ts": event.get("ts", "")} | event | {"type": kind},
            "event_id": f"Ev{number}",
            "event_time": int(time.time()),
            "authorizations": [authorization | {"enterprise_id": None}],
        }
        return self.add("events_api", payload)

    def add(self, kind: Kind, payload: Json) -> Envelope:
        envelope = Envelope(id=f"envelope-{len(self.envelopes) + 1}", kind=kind, payload=payload)
        self.envelopes.append(envelope)
        return envelope

    def again(self, envelope: Envelope) -> None:
        """Once more, whether it was taken or not."""
        envelope.state, envelope.due = "open", 0.0
        envelope.deliveries = min(envelope.deliveries, MOST_DELIVERIES - 1)

    def fall_silent(self) -> None:
        for socket in self.sockets.values():
            socket.silent = True

    async def serve(self, call: Call, request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse(autoping=False)
        await ws.prepare(request)
        self._connections += 1
        transport = request.transport
        socket = Socket(number=self._connections, ws=ws, transport=transport)
        await ws.send_json(
            {
                "type": "hello",
                "num_connections": len(self.sockets) + 1,
                "connection_info": {"app_id": APP},
            }
        )
        with self._stand_in.changes.lock:
            self.sockets[socket.number] = socket
        self._stand_in.changes.announce()
        reader = asyncio.create_task(self._read(socket))
        await self._stand_in.until(call, reader.done)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        self._forget(socket)
        if not ws.closed and not call.cancelled:
            await ws.close()
        return ws

    async def refresh(self) -> None:
        """Slack wants each socket replaced, and closes it soon."""
        for socket in self._open():
            socket.closing = True
            await socket.ws.send_json({"type": "disconnect", "reason": "refresh_requested"})

    def drop(self) -> None:
        for socket in self._open():
            if socket.transport is not None:
                socket.transport.abort()

    async def deliver(self) -> None:
        """For as long as the stand-in runs."""
        async with aiohttp.ClientSession() as session:
            posts: set[asyncio.Task[None]] = set()
            while True:
                await self._stand_in.changes.until(lambda: bool(self._due()), 0.05)
                for envelope in self._due():
                    envelope.due = time.monotonic() + self.ack_seconds
                    task = asyncio.create_task(self._bring(session, envelope))
                    posts.add(task)
                    task.add_done_callback(posts.discard)

    def _due(self) -> list[Envelope]:
        now = time.monotonic()
        return [envelope for envelope in self.open_ones if envelope.due <= now]

    async def _bring(self, session: aiohttp.ClientSession, envelope: Envelope) -> None:
        most = MOST_DELIVERIES if envelope.kind == "events_api" else 1
        if envelope.deliveries >= most:
            envelope.state = "lost"
            self._stand_in.changes.announce()
            return
        envelope.deliveries += 1
        if self.request_url:
            await self._post(session, envelope)
        else:
            await self._send(envelope)

    async def _send(self, envelope: Envelope) -> None:
        sockets = [socket for socket in self._open() if not socket.closing]
        if not sockets:
            return
        self._next += 1
        socket = sockets[self._next % len(sockets)]
        message: Json = {
            "envelope_id": envelope.id,
            "type": envelope.kind,
            "payload": envelope.payload,
            "accepts_response_payload": envelope.kind != "events_api",
        }
        if envelope.kind == "events_api":
            message |= {"retry_attempt": envelope.deliveries - 1, "retry_reason": ""}
        if envelope.deliveries > 1:
            message["retry_reason"] = "timeout"
        envelope.sent_to.append(socket.number)
        if not socket.silent:
            await _try_to_send(socket.ws, message)

    async def _post(self, session: aiohttp.ClientSession, envelope: Envelope) -> None:
        body, content_type = _body(envelope)
        headers = signed(body) | {"Content-Type": content_type}
        if envelope.deliveries > 1:
            headers["X-Slack-Retry-Num"] = str(envelope.deliveries - 1)
            headers["X-Slack-Retry-Reason"] = "http_error"
        timeout = aiohttp.ClientTimeout(total=self.ack_seconds)
        try:
            async with session.post(
                self.request_url, data=body, headers=headers, timeout=timeout
            ) as response:
                self.posts.append(response.status)
                envelope.answer = await response.text()
                if response.status // 100 == 2:
                    envelope.state = "taken"
        except (aiohttp.ClientError, TimeoutError) as error:
            self.posts.append(type(error).__name__)
        self._stand_in.changes.announce()

    async def _read(self, socket: Socket) -> None:
        async for message in socket.ws:
            if socket.silent:
                continue
            if message.type == WSMsgType.PING:
                await socket.ws.pong(message.data)
            elif message.type == WSMsgType.TEXT:
                self._acked(json.loads(message.data))

    def _acked(self, answer: Json) -> None:
        with self._stand_in.changes.lock:
            for envelope in self.envelopes:
                if envelope.id == answer.get("envelope_id"):
                    envelope.state, envelope.answer = "taken", answer.get("payload")
        self._stand_in.changes.announce()

    def _open(self) -> list[Socket]:
        return [socket for socket in self.sockets.values() if not socket.ws.closed]

    def _forget(self, socket: Socket) -> None:
        with self._stand_in.changes.lock:
            self.sockets.pop(socket.number, None)
        self._stand_in.changes.announce()


def signed(body: bytes, at: float | None = None, secret: str = SIGNING_SECRET) -> dict[str, str]:
    """The headers that prove that Slack sent it."""
    timestamp = str(int(time.time() if at is None else at))
    base = f"v0:{timestamp}:".encode() + body
    digest = hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={digest}"}


def _body(envelope: Envelope) -> tuple[bytes, str]:
    form = "application/x-www-form-urlencoded"
    match envelope.kind:
        case "events_api":
            return json.dumps(envelope.payload).encode(), "application/json"
        case "slash_commands":
            return urlencode(envelope.payload).encode(), form
        case "interactive":
            return urlencode({"payload": json.dumps(envelope.payload)}).encode(), form


def _subscription(kind: str, event: Json) -> str:
    places = {"im": "im", "mpim": "mpim", "channel": "channels", "group": "groups"}
    return f"message.{places[event['channel_type']]}" if kind == "message" else kind


async def _try_to_send(ws: web.WebSocketResponse, message: Json) -> None:
    try:
        await ws.send_json(message)
    except ConnectionError:
        return
