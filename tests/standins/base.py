"""A platform on 127.0.0.1 for tests, in a thread of its own; it never touches the network."""

import abc
import asyncio
import inspect
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Self, TypeVar

import msgspec
from aiohttp import web

from tests.standins.changes import Changes
from tests.standins.faults import (
    Fault,
    FaultScript,
    Hang,
    Raw,
    Refuse,
    RefusedError,
    Reset,
    Slow,
    StoreThenCut,
)

T = TypeVar("T")
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
LARGEST_REQUEST = 64 * 2**20
# A connection that was accepted is known to the server, which then closes it, after these turns
# of the loop. One accepted while the server closes would be left open, by asyncio itself.
TURNS_OF_AN_ACCEPT = 4


class Call(msgspec.Struct):
    """One incoming call. `number` counts all calls from 1, `nth` those of its method.

    `at` is `time.monotonic()`, `pieces` the parts of a streamed answer that went out. `who` is the
    caller, where each has an address of its own.
    """

    number: int
    nth: int
    method: str
    params: dict[str, Any]
    at: float
    effect: Any = None
    outcome: str = "open"
    cancelled: bool = False
    pieces: int = 0
    who: str = ""


Hook = Callable[[Call], Awaitable[Fault | None] | Fault | None]


def go_on(call: Call) -> None:
    """The hook that does nothing."""


class StandIn(abc.ABC):
    """`before` runs before a call's effect is stored, `after` between effect and answer.

    A hook may return a fault. One that kills the caller returns `Reset()` from `before`, so that
    nothing is stored, and anything from `after`. Hooks run in the stand-in's thread.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.faults = FaultScript()
        self.before: Hook = go_on
        self.after: Hook = go_on
        self.changes = Changes()
        self._counts = Counter[str]()
        self._broken: list[BaseException] = []
        self._running: set[asyncio.Task[web.StreamResponse]] = set()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._port = 0

    @abc.abstractmethod
    def routes(self) -> Iterable[web.RouteDef]: ...

    @abc.abstractmethod
    async def act(self, call: Call) -> Any:
        """Stores the effect and returns it; raises RefusedError where the platform would refuse."""

    @abc.abstractmethod
    async def answer(self, call: Call, request: web.Request) -> web.StreamResponse:
        """From `call.effect`."""

    @abc.abstractmethod
    def refusal(self, refuse: Refuse) -> web.Response: ...

    @abc.abstractmethod
    async def work(self) -> None:
        """Runs beside the server, is cancelled when it stops."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """A second start takes the same port: the platform is back after an outage."""
        listener = socket.create_server(("127.0.0.1", self._port))
        self._port = listener.getsockname()[1]
        self._stopping = False
        run = partial(asyncio.run, self._serve(listener))
        self._thread = threading.Thread(target=run, name=type(self).__name__, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Raises what broke inside the stand-in, so that its own bugs are not taken for faults."""
        self._stopping = True
        self.changes.announce()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._broken:
            broken, self._broken = self._broken, []
            raise BaseExceptionGroup(f"{type(self).__name__} is broken", broken)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    def calls_of(self, *methods: str) -> list[Call]:
        with self.changes.lock:
            return [call for call in self.calls if call.method in methods]

    async def wait_for(self, predicate: Callable[[], T], timeout: float = 10.0) -> T:  # noqa: ASYNC109
        """What the predicate returned when it was first true; seconds, for another process."""
        deadline = time.monotonic() + timeout
        while not (value := self._look(predicate)):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {timeout} s; last calls:\n{self._tail()}")
            await asyncio.sleep(0.01)
        return value

    async def handle(
        self, request: web.Request, method: str, params: dict[str, Any]
    ) -> web.StreamResponse:
        """A client that leaves ends what waits, but never undoes or skips an effect."""
        call = self._log(method, params, request.match_info.get("who", ""))
        task = asyncio.create_task(self._run(call, request))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            call.cancelled = True
            self.changes.announce()
            raise

    async def until(
        self, call: Call, predicate: Callable[[], bool], seconds: float | None = None
    ) -> bool:
        """Whether it became true before the client left, the stand-in stopped or time ran out."""
        await self.changes.until(lambda: self.is_over(call) or predicate(), seconds)
        return not self.is_over(call) and self._look(predicate)

    def is_over(self, call: Call) -> bool:
        return call.cancelled or self._stopping

    async def _run(self, call: Call, request: web.Request) -> web.StreamResponse:
        try:
            response = await self._perform(call, request)
        except RefusedError as error:
            call.outcome = f"{error.refuse.status} {error.refuse.text}"
            response = self.refusal(error.refuse)
        except ConnectionError:
            call.cancelled, call.outcome = True, "client left"
            response = web.Response()
        except Exception as error:
            call.outcome = f"broken: {error!r}"
            self._broken.append(error)
            raise
        self.changes.announce()
        return response

    async def _perform(self, call: Call, request: web.Request) -> web.StreamResponse:
        fault = await run_hook(self.before, call) or self.faults.take(call.method, call.nth)
        if response := await self._spoil(fault, call, request):
            return response
        call.effect = await self.act(call)
        fault = await run_hook(self.after, call) or fault
        if isinstance(fault, Hang):
            await self.until(call, lambda: False)
        if isinstance(fault, Hang | StoreThenCut | Reset):
            return cut(call, request, "stored, then cut")
        call.outcome = "ok"
        return await self.answer(call, request)

    async def _spoil(
        self, fault: Fault | None, call: Call, request: web.Request
    ) -> web.Response | None:
        match fault:
            case Refuse():
                raise RefusedError(fault)
            case Raw(status, body, content_type):
                call.outcome = f"{status} {content_type}"
                return web.Response(status=status, text=body, content_type=content_type)
            case Reset():
                return cut(call, request, "reset")
            case Hang(stores=False):
                await self.until(call, lambda: False)
                return cut(call, request, "hung")
            case Slow(seconds):
                await self.changes.until(lambda: self._stopping, seconds)
            case _:
                pass
        return None

    def _log(self, method: str, params: dict[str, Any], who: str) -> Call:
        with self.changes.lock:
            self._counts[method] += 1
            number, nth = len(self.calls) + 1, self._counts[method]
            call = Call(number, nth, method, params, time.monotonic(), who=who)
            self.calls.append(call)
        return call

    def _look(self, predicate: Callable[[], T]) -> T:
        with self.changes.lock:
            return predicate()

    def _tail(self) -> str:
        with self.changes.lock:
            lines = [f"{c.number} {c.method}: {c.outcome} {c.params!r:.300}" for c in self.calls]
        return "\n".join(lines[-20:])

    async def _serve(self, listener: socket.socket) -> None:
        self.changes.bind(asyncio.get_running_loop())
        app = web.Application(client_max_size=LARGEST_REQUEST)
        app.add_routes(self.routes())
        runner = web.AppRunner(
            app, handler_cancellation=True, shutdown_timeout=0.5, access_log=None
        )
        await runner.setup()
        await web.SockSite(runner, listener).start()
        work = asyncio.create_task(self.work())
        await self.changes.until(lambda: self._stopping)
        work.cancel()
        await asyncio.wait([work, *self._running])
        if not work.cancelled() and (error := work.exception()):
            self._broken.append(error)
        asyncio.get_running_loop().remove_reader(listener)
        for _ in range(TURNS_OF_AN_ACCEPT):
            await asyncio.sleep(0)
        await runner.cleanup()
        self.changes.bind(None)


async def run_hook(hook: Hook, call: Call) -> Fault | None:
    result = hook(call)
    return await result if inspect.isawaitable(result) else result


def cut(call: Call, request: web.Request, outcome: str) -> web.Response:
    """The peer sees a reset connection, as after a crash."""
    call.outcome = outcome
    transport = request.transport
    if transport is not None:
        transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE
        )
        transport.abort()
    return web.Response()
