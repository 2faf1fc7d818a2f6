"""A model for tests, scripted and strict, whatever its vendor; it never thinks."""

import abc
import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from aiohttp import web

from tests.standins.base import Call, StandIn, cut
from tests.standins.faults import Refuse, RefusedError
from tests.standins.openai_reply import Reply, last_user_text
from tests.standins.tokens import Kept, Piece, Used

Json = dict[str, Any]
Respond = Callable[[Json], Reply | Refuse]


def echo(request: Json) -> Reply:
    return Reply(text=f"You said: {last_user_text(request)}")


class Spoken(Protocol):
    """A reply in its vendor's shape, whole or in pieces."""

    @property
    def reply(self) -> Reply: ...

    @property
    def streams(self) -> bool: ...

    def whole(self) -> Json: ...

    def chunks(self) -> Iterator[Json]: ...


class ModelStandIn(StandIn):
    """Scripted replies first, then what `respond` makes of the request.

    `requests` are all bodies in order, `violations` what was wrong with them. A call that is held
    and given up takes no scripted reply. With `api_key` any other key is refused. A request of
    more than `window` tokens is refused, too, and is no violation: `too_long` are their sizes.
    """

    ending = b""
    """Of a stream, after its last chunk."""

    def __init__(
        self, respond: Respond = echo, api_key: str | None = None, window: int | None = None
    ) -> None:
        super().__init__()
        self.window = window
        self.too_long: list[int] = []
        self.respond: Respond = respond
        self.api_key = api_key
        self.requests: list[Json] = []
        self.violations: list[str] = []
        self._script: deque[Reply | Refuse] = deque()
        self._held = False
        self._kept = Kept()

    @abc.abstractmethod
    def wrong(self, request: Json) -> list[str]:
        """What the vendor refuses in it."""

    @abc.abstractmethod
    def pieces(self, request: Json) -> Iterator[Piece]:
        """Of its prompt, in the order in which the vendor reads it."""

    @abc.abstractmethod
    def overflow(self, tokens: int, window: int) -> Refuse: ...

    @abc.abstractmethod
    def shaped(self, reply: Reply, request: Json, number: int, used: Used) -> Spoken: ...

    @abc.abstractmethod
    def frame(self, chunk: Json) -> bytes: ...

    def script(self, *replies: Reply | Refuse) -> None:
        """For the next completions, one each; faults count apart and come first."""
        self._script.extend(replies)

    def hold(self) -> None:
        self._held = True

    def release(self) -> None:
        self._held = False
        self.changes.announce()

    @property
    def cancelled(self) -> list[Call]:
        """Calls whose client left before the answer was out."""
        with self.changes.lock:
            return [call for call in self.calls if call.cancelled]

    async def work(self) -> None:
        """Nothing to do beside the answers."""

    async def complete(self, call: Call, request: Json) -> Spoken:
        with self.changes.lock:
            self.requests.append(request)
            found = self.wrong(request)
            self.violations += found
        self.changes.announce()
        if found:
            raise RefusedError(Refuse(400, found[0]))
        used = self._read(request)
        await self.until(call, lambda: not self._held)
        if self.is_over(call):
            raise ConnectionResetError
        with self.changes.lock:
            reply = self._script.popleft() if self._script else self.respond(request)
        if isinstance(reply, Refuse):
            raise RefusedError(reply)
        return self.shaped(reply, request, call.number, used)

    def _read(self, request: Json) -> Used:
        with self.changes.lock:
            used = Kept().use(self.pieces(request))
            if self.window is not None and used.total > self.window:
                self.too_long.append(used.total)
                raise RefusedError(self.overflow(used.total, self.window))
            return self._kept.use(self.pieces(request))

    async def say(self, call: Call, spoken: Spoken, request: web.Request) -> web.StreamResponse:
        say = self._stream if spoken.streams else self._at_once
        return await say(call, spoken, request)

    async def _at_once(
        self, call: Call, spoken: Spoken, request: web.Request
    ) -> web.StreamResponse:
        reply = spoken.reply
        if reply.hang_after is not None:
            await self.until(call, lambda: False)
        if reply.hang_after is not None or reply.cut_after is not None:
            return cut(call, request, "cut")
        if reply.garbage_after is not None:
            return web.Response(text="{not json", content_type="application/json")
        return web.json_response(spoken.whole())

    async def _stream(self, call: Call, spoken: Spoken, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        reply = spoken.reply
        for chunk in spoken.chunks():
            if call.pieces == reply.hang_after:
                await self.until(call, lambda: False)
                return cut(call, request, "hung in the stream")
            if call.pieces == reply.cut_after:
                return cut(call, request, "cut in the stream")
            if call.pieces == reply.garbage_after:
                await response.write(b"data: {not json\n\n")
                break
            await self._send(call, response, chunk, reply.delay_per_chunk)
        if self.ending:
            await response.write(self.ending)
        await response.write_eof()
        return response

    async def _send(
        self, call: Call, response: web.StreamResponse, chunk: Json, delay: float
    ) -> None:
        if call.cancelled:
            raise ConnectionResetError
        await response.write(self.frame(chunk))
        call.pieces += 1
        self.changes.announce()
        await asyncio.sleep(delay)
