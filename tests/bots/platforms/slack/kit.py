"""The adapter at work against the stand-in, by the genuine SDKs; it never waits for real pauses."""

import asyncio
import socket
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import cast

import uvicorn
from starlette.applications import Starlette

from bots.bookmarks import StoredBookmarks
from bots.platforms import Adapter, Site
from bots.platforms.slack import PLATFORM
from bots.platforms.slack.catchup import WRITE_SECONDS
from bots.platforms.slack.channel import SlackChannel
from core.domain.keys import Address
from core.domain.messages import Inbound, OutboxMessage, Part
from core.ports import Channel
from storage.memory import MemoryStore
from tests.standins.slack import SlackStandIn

COMMANDS = (("new", "start over"), ("stop", "end what is running"), ("help", "what there is"))
CHANNEL = "C1"
MINUTE = 60.0
BOT = "UBOT"


class Inbox:
    """Takes what is offered, each update once; ``failing`` is raised instead while it is set."""

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
        if inbound.update_id not in {taken.update_id for taken in self.taken}:
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
    """One process; ``store`` and ``inbox`` outlive it where they are given."""

    def __init__(
        self,
        slack: SlackStandIn,
        store: MemoryStore | None = None,
        inbox: Inbox | None = None,
        **variables: str,
    ) -> None:
        self.slack = slack
        self.store = store or MemoryStore()
        self.inbox = inbox or Inbox()
        self.clock = QuickClock()
        given = {"SLACK_BOT_TOKEN": slack.bot_token, "SLACK_API_URL": slack.api_url}
        way = {} if variables.get("SLACK_SIGNING_SECRET") else {"SLACK_APP_TOKEN": slack.app_token}
        site = Site(
            accept=self.inbox.accept,
            clock=self.clock,
            bookmarks=lambda platform: StoredBookmarks(self.store, platform),
            commands=COMMANDS,
        )
        adapter = PLATFORM.build(given | way | variables, site)
        assert adapter is not None
        self.adapter: Adapter = adapter

    @property
    def channel(self) -> SlackChannel:
        return cast("SlackChannel", self.adapter.channel)

    @property
    def pauses(self) -> list[float]:
        """But for those between looks at the marks."""
        return [pause for pause in self.clock.slept if pause != WRITE_SECONDS]

    async def takes(self, count: int = 1) -> list[Inbound]:
        await self.slack.wait_for(lambda: len(self.inbox.taken) >= count)
        return self.inbox.taken

    async def is_well(self) -> None:
        await self.slack.wait_for(lambda: self.adapter.health().ok)

    async def says(self, word: str) -> None:
        """Until its health does."""
        await self.slack.wait_for(lambda: word in self.adapter.health().detail)

    async def marks(self) -> dict[str, str]:
        """Up to where each place is on disk."""
        stored = await StoredBookmarks(self.store, "slack").read()
        return {place: mark.partition(" ")[0] for place, mark in stored.items()}


def here(channel: str = "DU7", thread: str = "") -> Address:
    return Address(
        platform="slack",
        account=BOT,
        workspace="T1",
        chat=channel,
        chat_type="dm" if channel.startswith("D") else "channel",
        thread=thread,
    )


def row(part: Part, address: Address, name: str = "k@1#1") -> OutboxMessage:
    return OutboxMessage(id=name, key="k", address=address, kind="answer", part=part)


def plain(text: str) -> Part:
    return Part(text=text, plain=text)


def previewed(channel: Channel, text: str) -> Part:
    part = channel.preview(text)
    assert part is not None
    return part


@asynccontextmanager
async def socketed(
    slack: SlackStandIn, store: MemoryStore | None = None, inbox: Inbox | None = None
) -> AsyncGenerator[Bench]:
    bench = Bench(slack, store, inbox)
    await bench.adapter.start()
    try:
        yield bench
    finally:
        await bench.adapter.close()


@asynccontextmanager
async def served(
    slack: SlackStandIn, store: MemoryStore | None = None, inbox: Inbox | None = None
) -> AsyncGenerator[tuple[Bench, str]]:
    """A bench that is reached over HTTP, at the address that is given; not started."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/slack/events"
    bench = Bench(slack, store, inbox, SLACK_SIGNING_SECRET=slack.signing_secret)
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
