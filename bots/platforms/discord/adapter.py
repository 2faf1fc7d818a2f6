"""Puts Discord's parts together, and starts and stops them; it reads no message itself."""

import asyncio

import structlog
from starlette.routing import Route

from bots.platforms import Health, Site
from bots.platforms.discord import menu
from bots.platforms.discord.channel import DiscordChannel
from bots.platforms.discord.client import Calls
from bots.platforms.discord.faults import described, fault_of
from bots.platforms.discord.gateway import Gateway
from bots.platforms.discord.history import History
from bots.platforms.discord.intake import Intake
from bots.platforms.discord.invite import links
from bots.platforms.discord.presses import Presses
from bots.platforms.discord.settings import Settings
from bots.platforms.discord.words import SILENT_SECONDS, WORDS, judge
from bots.platforms.patience import Patience
from bots.platforms.signs import Signs
from bots.platforms.taker import Taker

MENU_SECONDS = 5.0
CHECK_SECONDS = 10.0

log = structlog.get_logger(__name__)


class DiscordAdapter:
    def __init__(self, settings: Settings, site: Site) -> None:
        self._settings = settings
        self._commands = site.commands
        self._calls = Calls(settings)
        self._signs = Signs("discord", WORDS, SILENT_SECONDS, site.clock)
        self._patience = Patience(
            self._signs, site.clock, lambda error: judge(error, settings.redact)
        )
        get_client = self._calls.client
        taker = Taker(site.accept, self._signs)
        bookmarks = site.bookmarks("discord")
        history = History(get_client, site.clock, settings.redact)
        intake = Intake(taker, self._patience, bookmarks, self._signs, site.clock, history)
        self._gateway = Gateway(settings, intake, self._signs, self._patience, site.clock)
        self._presses = Presses(taker, site.clock, get_client, settings.redact)
        self._channel = DiscordChannel(get_client, self._signs, settings.redact, site.clock)
        self._task: asyncio.Task[None] | None = None

    @property
    def channel(self) -> DiscordChannel:
        return self._channel

    @property
    def routes(self) -> tuple[Route, ...]:
        return ()

    @property
    def intake(self) -> str:
        return f"discord {self._settings.application_id}"

    async def open(self) -> None:
        """The SDK's client opens itself at the first call."""

    def health(self) -> Health:
        return self._signs.health()

    async def start(self) -> None:
        if self._task is not None and not self._task.done():
            return
        self._signs.enter("connecting")
        self._task = asyncio.create_task(self._patience.keep_at(self._run), name="discord")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if not self._signs.refused:
            self._signs.enter("off")

    async def close(self) -> None:
        await self.stop()
        await self._calls.close()

    async def check(self) -> Health:
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                client = await self._calls.client()
        except Exception as error:  # noqa: BLE001 - a strange answer breaks the SDK in any way
            refused = fault_of(error) == "refused"
            self._signs.enter(
                "refused" if refused else "unreachable", described(error, self._settings.redact)
            )
            return self._signs.health()
        self._signs.heard()
        detail = f"the token is good, it is {client.user}'s"
        return Health(ok=True, detail=detail, last_sign=self._signs.health().last_sign)

    async def _run(self) -> None:
        """Raises TokenRefusedError."""
        me = await self._patience.insist(self._introduce)
        await self._offer_commands()
        await self._gateway.run(me, self._presses.handle)

    async def _introduce(self) -> int:
        client = await self._calls.client()
        self._signs.heard()
        if client.user is None:
            raise LookupError("Discord does not say who we are")
        self._signs.introduce(client.user.name, links(self._settings.application_id).server)
        return client.user.id

    async def _offer_commands(self) -> None:
        """Best effort: the menu is a convenience."""
        try:
            async with asyncio.timeout(MENU_SECONDS):
                await menu.offer(await self._calls.client(), self._commands)
        except Exception as error:  # noqa: BLE001 - the SDK may break in any way
            log.warning("no command menu", error=described(error, self._settings.redact))
