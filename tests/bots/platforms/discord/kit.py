"""The adapter at work against the stand-in, by the genuine SDK; it never waits for real pauses."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from bots.bookmarks import StoredBookmarks
from bots.platforms import Adapter, Site
from bots.platforms.discord import PLATFORM
from core.domain.messages import Inbound
from storage.memory import MemoryStore
from tests.bots.platforms.telegram.kit import COMMANDS, Inbox, QuickClock
from tests.standins.discord import DiscordStandIn

CHANNEL, THREAD, FOREIGN = 500, 501, 502


class GatedInbox(Inbox):
    """Takes nothing while the gate is shut."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()

    async def accept(self, inbound: Inbound) -> None:
        await self.gate.wait()
        await super().accept(inbound)


class Bench:
    """What a process has; ``store`` outlives it."""

    def __init__(
        self, place: DiscordStandIn, store: MemoryStore | None = None, **variables: str
    ) -> None:
        self.place = place
        self.store = store or MemoryStore()
        self.inbox = GatedInbox()
        self.clock = QuickClock()
        given = {
            "DISCORD_BOT_TOKEN": place.token,
            "DISCORD_API_URL": place.api_url,
            "DISCORD_GATEWAY_URL": place.gateway_url,
        }
        site = Site(
            accept=self.inbox.accept,
            clock=self.clock,
            bookmarks=lambda platform: StoredBookmarks(self.store, platform),
            commands=COMMANDS,
        )
        self.adapter = built(given | variables, site)

    async def takes(self, count: int = 1) -> list[Inbound]:
        await self.place.wait_for(lambda: len(self.inbox.taken) >= count)
        return self.inbox.taken

    async def is_well(self) -> None:
        await self.place.wait_for(lambda: self.adapter.health().ok)

    async def says(self, word: str) -> None:
        """Until its health does."""
        await self.place.wait_for(lambda: word in self.adapter.health().detail)


def built(variables: dict[str, str], site: Site) -> Adapter:
    adapter = PLATFORM.build(variables, site)
    assert adapter is not None
    return adapter


@asynccontextmanager
async def online(place: DiscordStandIn, store: MemoryStore | None = None) -> AsyncGenerator[Bench]:
    bench = Bench(place, store)
    await bench.adapter.start()
    try:
        await bench.is_well()
        yield bench
    finally:
        await bench.adapter.close()
