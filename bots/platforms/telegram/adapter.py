"""Puts Telegram's parts together, and starts and stops them; it reads no message itself."""

import asyncio

import structlog
from starlette.routing import Route

from bots.platforms import Health, Site
from bots.platforms.patience import Patience
from bots.platforms.signs import Signs
from bots.platforms.taker import Taker
from bots.platforms.telegram.channel import TelegramChannel
from bots.platforms.telegram.client import Client
from bots.platforms.telegram.faults import described, fault_of
from bots.platforms.telegram.intake import Intake
from bots.platforms.telegram.moves import Moves
from bots.platforms.telegram.polling import Poller
from bots.platforms.telegram.settings import Settings
from bots.platforms.telegram.translate import Me
from bots.platforms.telegram.webhook import Webhook
from bots.platforms.telegram.words import SILENT_SECONDS, WORDS, judge

MENU_SECONDS = 5.0
CHECK_SECONDS = 5.0
LONGEST_SUMMARY = 256

log = structlog.get_logger(__name__)


class TelegramAdapter:
    def __init__(self, settings: Settings, site: Site) -> None:
        self._settings = settings
        self._commands = site.commands
        self._client = Client(settings)
        self._signs = Signs("telegram", WORDS, SILENT_SECONDS, site.clock)
        self._patience = Patience(
            self._signs, site.clock, lambda error: judge(error, settings.redact)
        )
        self._moves = Moves(site.bookmarks("telegram"))
        taker = Taker(site.accept, self._signs)
        self._intake = Intake(taker, self._client.bot, self._moves, site.clock)
        self._source, self._routes = self._chosen(site)
        self._channel = TelegramChannel(self._client.bot, self._signs, self._moves, settings.redact)
        self._task: asyncio.Task[None] | None = None

    @property
    def channel(self) -> TelegramChannel:
        return self._channel

    @property
    def routes(self) -> tuple[Route, ...]:
        return self._routes

    @property
    def intake(self) -> str:
        return self._settings.intake

    async def open(self) -> None:
        await self._client.open()
        await self._moves.load()

    def health(self) -> Health:
        return self._signs.health()

    async def start(self) -> None:
        if self._task is not None and not self._task.done():
            return
        await self._client.open()
        self._signs.enter("connecting")
        self._task = asyncio.create_task(self._patience.keep_at(self._run), name="telegram")

    async def stop(self) -> None:
        """A webhook stays set: Telegram keeps what it cannot deliver until we are back."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self._intake.close()
        if not self._signs.refused:
            self._signs.enter("off")

    async def close(self) -> None:
        await self.stop()
        await self._client.close()

    async def check(self) -> Health:
        try:
            await self._client.open()
            me = await self._client.bot.get_me(read_timeout=CHECK_SECONDS)
        except Exception as error:  # noqa: BLE001 - a strange answer breaks the SDK in any way
            refused = fault_of(error) == "refused"
            self._signs.enter(
                "refused" if refused else "unreachable", described(error, self._settings.redact)
            )
            return self._signs.health()
        detail = f"the token is good, it is @{me.username}'s"
        return Health(ok=True, detail=detail, last_sign=self._signs.health().last_sign)

    def _chosen(self, site: Site) -> tuple[Poller | Webhook, tuple[Route, ...]]:
        bot, intake, signs, patience = self._client.bot, self._intake, self._signs, self._patience
        if self._settings.mode == "polling":
            return Poller(bot, intake, signs, patience), ()
        webhook = Webhook(bot, intake, signs, patience, site.clock)
        return webhook, (webhook.route(self._settings),)

    async def _run(self) -> None:
        """Raises TokenRefusedError."""
        await self._patience.insist(self._moves.load)
        await self._patience.insist(self._introduce)
        await self._offer_commands()
        await self._source.run()

    async def _introduce(self) -> None:
        me = await self._client.bot.get_me()
        self._intake.introduce(Me(me.id, me.username or ""))
        if me.link:
            self._signs.introduce(f"@{me.username}", me.link, f"{me.link}?start=")
        self._signs.heard()

    async def _offer_commands(self) -> None:
        """Best effort: the menu is a convenience."""
        menu = [(name, summary[:LONGEST_SUMMARY]) for name, summary in self._commands]
        try:
            await self._client.bot.set_my_commands(menu, read_timeout=MENU_SECONDS)
        except Exception as error:  # noqa: BLE001 - a strange answer breaks the SDK in any way
            log.warning("no command menu", error=described(error, self._settings.redact))
