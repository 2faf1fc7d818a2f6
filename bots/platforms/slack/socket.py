"""Socket Mode: one socket that is heard, and replaced when it falls silent or Slack asks for it.

The SDK's own client opens sockets for ever, in even steps, whatever the refusal, and closes the old
one first; so the socket is read here, and what it brings goes through the SDK's classes.
"""

import asyncio
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
import structlog
from aiohttp import ClientWebSocketResponse, WSMessage, WSMsgType
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from bots.platforms.patience import LONGEST_SECONDS, Patience, jittered
from bots.platforms.signs import Signs
from bots.platforms.slack.client import Client
from bots.platforms.slack.front import Front
from core.ports import Clock

PING_SECONDS = 10.0
MOST_UNANSWERED = 2
SHORT_SECONDS = 30.0
"""A socket that lives shorter is waited for before the next: longer and longer, unless it was of
some use. Slack allows about 50 new ones a minute."""
OLD_SECONDS = 30.0
"""How long a socket that Slack wants replaced is still read."""

log = structlog.get_logger(__name__)


class Watch(msgspec.Struct, frozen=True):
    signs: Signs
    patience: Patience
    clock: Clock


class Socket:
    """``gap`` is told whenever events may have been missed: no socket was open."""

    def __init__(
        self,
        client: Client,
        front: Front,
        watch: Watch,
        gap: Callable[[], None],
        ping_seconds: float = PING_SECONDS,
    ) -> None:
        self._client = client
        self._front = front
        self._signs = watch.signs
        self._patience = watch.patience
        self._clock = watch.clock
        self._gap = gap
        self._ping_seconds = ping_seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._open_sockets = 0
        self._soon_lost = 0

    async def run(self) -> None:
        """Until it is cancelled. Raises TokenRefusedError."""
        try:
            while True:
                ws = await self._patience.insist(self._connect)
                if not self._open_sockets:
                    self._gap()
                replaced, since = asyncio.Event(), self._clock.now()
                await _either(self._spawn(self._read(ws, replaced)), replaced)
                if not (replaced.is_set() or self._signs.refused):
                    self._signs.enter("connecting")
                await self._pause(since)
        finally:
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pause(self, since: datetime) -> None:
        lived = (self._clock.now() - since).total_seconds()
        self._soon_lost = 0 if lived > SHORT_SECONDS else self._soon_lost + 1
        if self._soon_lost:
            pause = min(LONGEST_SECONDS, 2.0 ** (self._soon_lost - 1))
            await self._clock.sleep(jittered(pause))

    async def _connect(self) -> ClientWebSocketResponse:
        ws = await self._client.connect()
        try:
            _check_hello(await ws.receive(timeout=self._ping_seconds))
        except BaseException:
            await ws.close()
            raise
        self._signs.receiving()
        return ws

    async def _read(self, ws: ClientWebSocketResponse, replaced: asyncio.Event) -> None:
        self._open_sockets += 1
        try:
            unanswered = 0
            while unanswered <= MOST_UNANSWERED:
                try:
                    frame = await ws.receive(timeout=self._ping_seconds)
                except TimeoutError:
                    unanswered += 1
                    await ws.ping()
                    continue
                unanswered = 0
                if frame.type in (WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.ERROR):
                    return
                await self._frame(ws, frame, replaced)
            log.warning("slack's socket is silent, it is replaced")
        except ConnectionError:
            return
        finally:
            self._open_sockets -= 1
            await ws.close()

    async def _frame(
        self, ws: ClientWebSocketResponse, frame: WSMessage, replaced: asyncio.Event
    ) -> None:
        self._hear(replaced)
        body = _body(frame)
        if body.get("type") == "disconnect":
            log.info("slack wants its socket replaced", reason=body.get("reason"))
            replaced.set()
            self._spawn(_close_late(ws))
            return
        self._soon_lost = 0
        if frame.type == WSMsgType.PING:
            await ws.pong(frame.data)
        requests: Any = SocketModeRequest
        if request := requests.from_dict(body):
            self._spawn(self._take(ws, request))

    def _hear(self, replaced: asyncio.Event) -> None:
        if self._front.stores and not replaced.is_set():
            self._signs.receiving()
        else:
            self._signs.heard()

    async def _take(self, ws: ClientWebSocketResponse, request: SocketModeRequest) -> None:
        """Without an answer Slack brings it again."""
        if not await self._front.take(request):
            return
        answer: Any = SocketModeResponse(envelope_id=request.envelope_id)
        try:
            await ws.send_str(json.dumps(answer.to_dict()))
        except ConnectionError:
            log.info("slack could not be told that a message is stored; it comes again")

    def _spawn(self, work: Any) -> asyncio.Task[None]:  # noqa: ANN401
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _check_hello(frame: WSMessage) -> None:
    if _body(frame).get("type") != "hello":
        raise ConnectionError("Slack does not greet the socket")


async def _either(task: asyncio.Task[None], event: asyncio.Event) -> None:
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def _close_late(ws: ClientWebSocketResponse) -> None:
    await asyncio.sleep(OLD_SECONDS)
    await ws.close()


def _body(frame: WSMessage) -> dict[str, Any]:
    """Half an emoji is no reason to refuse a message for ever."""
    if frame.type != WSMsgType.TEXT:
        return {}
    try:
        return msgspec.convert(json.loads(frame.data), dict[str, Any])
    except (ValueError, msgspec.ValidationError):
        log.warning("slack's socket brings what cannot be read")
        return {}
