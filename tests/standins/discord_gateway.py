"""Discord's gateway: sessions that outlive their connections; it knows nothing of REST."""

import asyncio
import json
import zlib
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from aiohttp import WSMsgType, web

from tests.standins.base import Call, cut
from tests.standins.changes import Changes
from tests.standins.discord_chats import Chats, guild_json, person_json

GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES = 1 << 0, 1 << 9, 1 << 12
PRIVILEGED = 1 << 1 | 1 << 8 | 1 << 15
HEARTBEAT_MS = 41_250
DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT = 0, 1, 2, 6, 7
INVALID_SESSION, HELLO, HEARTBEAT_ACK = 9, 10, 11
ENDS_SESSION = (1000, 1001)

Order = tuple[Literal["send", "close", "abort"], Any]


class Session(msgspec.Struct):
    """`events` are all that were dispatched, the first with the number 1; `sent` of them went out
    on the connection that it has now."""

    id: str
    intents: int
    events: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    sent: int = 0
    connection: "Connection | None" = None

    def add(self, event: str, data: Any) -> None:
        number = len(self.events) + 1
        self.events.append({"op": DISPATCH, "t": event, "s": number, "d": data})


class Connection:
    """`orders` are what is to go out beside the session's events."""

    def __init__(self, ws: web.WebSocketResponse, compressed: bool) -> None:
        self.ws = ws
        self.orders: list[Order] = []
        self.session: Session | None = None
        self.open = True
        self.silent = False
        self._zlib = zlib.compressobj() if compressed else None

    async def send(self, payload: Any) -> None:
        text = json.dumps(payload)
        if self._zlib is None:
            await self.ws.send_str(text)
            return
        data = self._zlib.compress(text.encode())
        await self.ws.send_bytes(data + self._zlib.flush(zlib.Z_SYNC_FLUSH))


class Gateway:
    """`identifies` and `resumes` count; `refused_intents` close with 4014 who asks for them.
    While `silent`, or on a connection that fell silent, it takes all and says nothing."""

    def __init__(self, chats: Chats, changes: Changes, is_token: Callable[[str], bool]) -> None:
        self.identifies = 0
        self.resumes = 0
        self.heartbeats = 0
        self.heartbeat_ms = HEARTBEAT_MS
        self.refused_intents = PRIVILEGED
        self.silent = False
        self._chats = chats
        self._changes = changes
        self._is_token = is_token
        self._sessions: dict[str, Session] = {}
        self._connections: list[Connection] = []

    @property
    def connected(self) -> int:
        """How many clients are ready."""
        with self._changes.lock:
            return sum(c.open and c.session is not None for c in self._connections)

    def push(self, event: str, data: Any, intent: int) -> None:
        """To each session, connected or not: one that comes back gets what it missed."""
        with self._changes.lock:
            for session in self._sessions.values():
                if session.intents & intent:
                    session.add(event, data)
        self._changes.announce()

    def asks_to_reconnect(self) -> None:
        self._order("send", {"op": RECONNECT, "d": None})

    def invalidates(self, *, resumable: bool = False) -> None:
        if not resumable:
            self.forgets()
        self._order("send", {"op": INVALID_SESSION, "d": resumable})

    def closes(self, code: int) -> None:
        self._order("close", code)

    def aborts(self) -> None:
        """The sockets are cut; the sessions stay."""
        self._order("abort", None)

    def fall_silent(self) -> None:
        """On the connections that are there, for as long as they last."""
        with self._changes.lock:
            for connection in self._connections:
                connection.silent = True

    def forgets(self) -> None:
        """No session can be resumed."""
        with self._changes.lock:
            self._sessions.clear()

    async def serve(
        self, call: Call, request: web.Request, is_over: Callable[[], bool]
    ) -> web.StreamResponse:
        compress = request.query.get("compress")
        if compress not in (None, "zlib-stream"):
            raise NotImplementedError(compress)
        ws = web.WebSocketResponse(autoping=True)
        await ws.prepare(request)
        connection = Connection(ws, compressed=compress is not None)
        with self._changes.lock:
            self._connections.append(connection)
        reader = asyncio.create_task(self._read(connection))
        try:
            await self._write(connection, call, request, is_over)
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            self._leave(connection)
        call.outcome = f"closed {ws.close_code}"
        return ws

    async def _write(
        self,
        connection: Connection,
        call: Call,
        request: web.Request,
        is_over: Callable[[], bool],
    ) -> None:
        await connection.send({"op": HELLO, "d": {"heartbeat_interval": self.heartbeat_ms}})
        while connection.open and not is_over():
            await self._changes.until(
                lambda: is_over() or not connection.open or self._has_news(connection)
            )
            for kind, value in self._news(connection):
                if kind == "send":
                    await connection.send(value)
                elif kind == "close":
                    connection.open = False
                    await connection.ws.close(code=value)
                else:
                    connection.open = False
                    cut(call, request, "aborted")
        if is_over() and connection.open:
            cut(call, request, "stopped")

    def _has_news(self, connection: Connection) -> bool:
        session = connection.session
        unsent = session is not None and session.sent < len(session.events)
        aborts = any(kind == "abort" for kind, _ in connection.orders)
        return aborts if self._is_silent(connection) else unsent or bool(connection.orders)

    def _news(self, connection: Connection) -> list[Order]:
        """Events before orders: what was said before an end is said."""
        with self._changes.lock:
            news: list[Order] = []
            silent = self._is_silent(connection)
            if (session := connection.session) and not silent:
                news = [("send", event) for event in session.events[session.sent :]]
                session.sent = len(session.events)
            orders, connection.orders = connection.orders, []
        return news + [order for order in orders if order[0] == "abort" or not silent]

    def _is_silent(self, connection: Connection) -> bool:
        return self.silent or connection.silent

    async def _read(self, connection: Connection) -> None:
        """A client that closes with 1000 or 1001 gives up its session."""
        async for frame in connection.ws:
            if frame.type is WSMsgType.TEXT:
                with self._changes.lock:
                    self._obey(connection, json.loads(frame.data))
                self._changes.announce()
        with self._changes.lock:
            gone = connection.open and connection.ws.close_code in ENDS_SESSION
            if gone and connection.session:
                self._sessions.pop(connection.session.id, None)
            connection.open = False
        self._changes.announce()

    def _obey(self, connection: Connection, payload: dict[str, Any]) -> None:
        data = payload.get("d")
        match payload["op"]:
            case 1:
                self.heartbeats += 1
                connection.orders.append(("send", {"op": HEARTBEAT_ACK}))
            case 2:
                self._identify(connection, data)
            case 6:
                self._resume(connection, data)
            case _:
                connection.orders.append(("close", 4001))

    def _identify(self, connection: Connection, data: Any) -> None:
        self.identifies += 1
        if not self._is_token(data["token"]):
            connection.orders.append(("close", 4004))
        elif data["intents"] & self.refused_intents:
            connection.orders.append(("close", 4014))
        elif connection.session is not None:
            connection.orders.append(("close", 4005))
        else:
            session = Session(f"session-{self.identifies}", data["intents"])
            kept = self._sessions.values()
            self._sessions = {s.id: s for s in kept if s.connection} | {session.id: session}
            self._greet(session)
            self._join(connection, session)

    def _greet(self, session: Session) -> None:
        ready = {
            "v": 10,
            "user": person_json(self._chats.bot),
            "guilds": [{"id": guild_json(self._chats)["id"], "unavailable": True}],
            "private_channels": [],
            "session_id": session.id,
            "resume_gateway_url": self._chats.url.replace("http", "ws") + "/gw/",
            "application": {"id": str(self._chats.bot.id), "flags": 0},
        }
        session.add("READY", ready)
        if session.intents & GUILDS:
            session.add("GUILD_CREATE", guild_json(self._chats))

    def _resume(self, connection: Connection, data: Any) -> None:
        session = self._sessions.get(data["session_id"] or "")
        if not self._is_token(data["token"]):
            connection.orders.append(("close", 4004))
        elif session is None:
            connection.orders.append(("send", {"op": INVALID_SESSION, "d": False}))
        else:
            self.resumes += 1
            session.sent = data["seq"]
            session.add("RESUMED", {})
            self._join(connection, session)

    def _join(self, connection: Connection, session: Session) -> None:
        session.connection = connection
        connection.session = session

    def _leave(self, connection: Connection) -> None:
        with self._changes.lock:
            connection.open = False
            if connection.session and connection.session.connection is connection:
                connection.session.connection = None
            self._connections.remove(connection)
        self._changes.announce()

    def _order(self, kind: Literal["send", "close", "abort"], value: Any) -> None:
        with self._changes.lock:
            for connection in self._connections:
                connection.orders.append((kind, value))
        self._changes.announce()
