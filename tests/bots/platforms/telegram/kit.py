"""The adapter at work against the stand-in, by the genuine SDK; it never waits for real pauses."""

import asyncio
import socket
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import uvicorn
from starlette.applications import Starlette

from bots.platforms import Adapter, Site
from bots.platforms.telegram import PLATFORM
from core.domain.messages import Inbound
from tests.bookmarks import no_bookmarks
from tests.standins.telegram import TelegramStandIn

COMMANDS = (("new", "start over"), ("stop", "end what is running"))
GROUP = -1001
MINUTE = 60.0


class Inbox:
    """Takes what is offered; ``failing`` is raised instead while it is set."""

    def __init__(self) -> None:
        self.offered: list[Inbound] = []
        self.taken: list[Inbound] = []
        self.failing: Exception | None = None
        self.failures = deque[Exception]()

    @property
    def texts(self) -> list[str]:
        return [inbound.text for inbound in self.taken]

    async def accept(self, inbound: Inbound) -> None:
        self.offered.append(inbound)
        failure = self.failures.popleft() if self.failures else self.failing
        if failure is not None:
            raise failure
        self.taken.append(inbound)


class QuickClock:
    """Remembers how long it was to sleep, and hardly does; but a minute passes when told to."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.ahead = timedelta()
        self._minute = asyncio.Event()

    def pass_a_minute(self) -> None:
        self._minute.set()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if seconds >= MINUTE:
            await self._minute.wait()
            self._minute.clear()
        await asyncio.sleep(min(seconds, 0.02))


class Bench:
    def __init__(self, tg: TelegramStandIn, public_url: str = "", **variables: str) -> None:
        self.tg = tg
        self.inbox = Inbox()
        self.clock = QuickClock()
        given = {"TELEGRAM_BOT_TOKEN": tg.token, "TELEGRAM_API_URL": tg.url} | variables
        site = Site(
            accept=self.inbox.accept,
            clock=self.clock,
            bookmarks=no_bookmarks,
            commands=COMMANDS,
            public_url=public_url,
        )
        self.adapter = built(given, site)

    async def takes(self, count: int = 1) -> list[Inbound]:
        await self.tg.wait_for(lambda: len(self.inbox.taken) >= count)
        return self.inbox.taken

    async def is_well(self) -> None:
        await self.tg.wait_for(lambda: self.adapter.health().ok)

    async def says(self, word: str) -> None:
        """Until its health does."""
        await self.tg.wait_for(lambda: word in self.adapter.health().detail)


def built(variables: dict[str, str], site: Site) -> Adapter:
    adapter = PLATFORM.build(variables, site)
    assert adapter is not None
    return adapter


@asynccontextmanager
async def polling(tg: TelegramStandIn) -> AsyncGenerator[Bench]:
    bench = Bench(tg)
    await bench.adapter.start()
    try:
        yield bench
    finally:
        await bench.adapter.close()


@asynccontextmanager
async def served(make: Callable[[str], Bench]) -> AsyncGenerator[tuple[Bench, str]]:
    """A bench whose routes are reached at the address that it was made with; not started."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    bench = make(url)
    app = Starlette(routes=list(bench.adapter.routes))
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield bench, url
    finally:
        await bench.adapter.close()
        server.should_exit = True
        await task
        listener.close()
