"""Puts Slack's parts together, and starts and stops them; it reads no message itself."""

import asyncio
from contextlib import suppress

from starlette.routing import Route

from bots.platforms import Health, Site
from bots.platforms.patience import Patience
from bots.platforms.signs import Signs
from bots.platforms.slack.catchup import CatchUp
from bots.platforms.slack.channel import SlackChannel
from bots.platforms.slack.client import Client
from bots.platforms.slack.front import Front
from bots.platforms.slack.intake import Intake
from bots.platforms.slack.names import Names
from bots.platforms.slack.places import Places
from bots.platforms.slack.settings import Settings
from bots.platforms.slack.socket import Socket, Watch
from bots.platforms.slack.translate import Me
from bots.platforms.slack.words import SILENT_SECONDS, WORDS, judge
from bots.platforms.taker import Taker
from core.errors import StorageError

LOOK_SECONDS = 60.0
"""Over HTTP nobody tells us that the token is gone: Slack is asked."""


class SlackAdapter:
    def __init__(self, settings: Settings, site: Site) -> None:
        self._settings = settings
        self._clock = site.clock
        self._client = Client(settings)
        self._signs = Signs("slack", WORDS, SILENT_SECONDS, site.clock)
        self._patience = Patience(
            self._signs, site.clock, lambda error: judge(error, settings.redact)
        )
        self._places = Places(site.bookmarks("slack"))
        self._intake = Intake(
            Taker(site.accept, self._signs),
            self._places,
            Names(self._client),
            site.clock,
            [name for name, _ in site.commands],
        )
        self._catch_up = CatchUp(
            self._client, self._intake, self._places, site.clock, settings.redact
        )
        self._front = Front(self._client, settings, self._intake, self._signs)
        self._channel = SlackChannel(self._client, self._signs, site.clock, settings.redact)
        self._task: asyncio.Task[None] | None = None

    @property
    def channel(self) -> SlackChannel:
        return self._channel

    @property
    def routes(self) -> tuple[Route, ...]:
        return () if self._settings.by_socket else (self._front.route,)

    @property
    def intake(self) -> str:
        return self._settings.intake

    async def open(self) -> None:
        """The SDK's client needs no opening."""

    def health(self) -> Health:
        return self._signs.health()

    async def start(self) -> None:
        if self._task is not None and not self._task.done():
            return
        self._signs.enter("connecting")
        self._task = asyncio.create_task(self._patience.keep_at(self._run), name="slack")

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
        await self._client.close()

    async def check(self) -> Health:
        """The app's token is asked for a socket that nobody opens."""
        try:
            me = await self._client.write("auth.test")
            if self._settings.by_socket:
                await self._client.socket_url()
        except Exception as error:  # noqa: BLE001 - a strange answer breaks the SDK in any way
            judged = judge(error, self._settings.redact)
            self._signs.enter(judged.state, judged.detail)
            return self._signs.health()
        way = "Socket Mode" if self._settings.by_socket else "events over HTTP"
        detail = f"the tokens are good, it is @{me.get('user')} in {me.get('team')}, by {way}"
        return Health(ok=True, detail=detail)

    async def _run(self) -> None:
        """Raises TokenRefusedError."""
        await self._patience.insist(self._introduce)
        await self._patience.insist(self._places.load)
        await self._listen()

    async def _introduce(self) -> None:
        me = await self._client.write("auth.test")
        team, user = str(me["team_id"]), str(me["user_id"])
        self._intake.introduce(Me(team, user))
        self._signs.introduce(f"@{me.get('user')}", f"slack://user?team={team}&id={user}")
        self._signs.heard()

    async def _listen(self) -> None:
        """Until it is cancelled. Raises TokenRefusedError."""
        aside = [
            asyncio.create_task(self._catch_up.run(), name="slack's history"),
            asyncio.create_task(self._catch_up.keep_marks(), name="slack's marks"),
        ]
        try:
            if self._settings.by_socket:
                await self._by_socket()
            else:
                await self._by_http()
        finally:
            for task in aside:
                task.cancel()
            await asyncio.gather(*aside, return_exceptions=True)
            with suppress(StorageError):
                await self._places.write()

    async def _by_socket(self) -> None:
        watch = Watch(self._signs, self._patience, self._clock)
        await Socket(self._client, self._front, watch, self._catch_up.gap).run()

    async def _by_http(self) -> None:
        self._front.is_open = True
        self._catch_up.gap()
        try:
            while True:
                await self._patience.insist(self._introduce)
                if self._intake.stores:
                    self._signs.receiving()
                await self._clock.sleep(LOOK_SECONDS)
        finally:
            self._front.is_open = False
