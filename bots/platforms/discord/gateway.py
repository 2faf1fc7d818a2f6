"""Keeps us connected to Discord's gateway; it stores nothing, and never begins sessions in a loop.

Within a round the SDK resumes a broken connection by itself. A session that cannot be resumed ends
the round, and the next one waits for its turn: Discord lets a bot begin a thousand sessions a day,
one every five seconds, and takes its token away when it begins more.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

import discord
import structlog

from bots.platforms.discord.client import FEWER_INTENTS, INTENTS, Client
from bots.platforms.discord.intake import Intake
from bots.platforms.discord.settings import Settings
from bots.platforms.discord.together import until_one_fails
from bots.platforms.discord.words import SpentError
from bots.platforms.patience import Patience, jittered
from bots.platforms.signs import Signs
from core.ports import Clock

LEAST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
STEADY = timedelta(minutes=10)
"""A session that lasted as long was a good one: the pauses begin anew."""
RESUME_SECONDS = 60.0
"""For so long the SDK may try to resume; then a new session is better than a deaf bot."""
RESERVE = 20
"""New sessions of a day that are left for people who start us again by hand."""

Press = Callable[[discord.Interaction], Coroutine[Any, Any, None]]

log = structlog.get_logger(__name__)


class SessionOverError(Exception):
    """It cannot be resumed, or was not for too long."""


class Ears(Client):
    """One session of the gateway: tells what it hears, in order. ``is_up`` while it hears."""

    def __init__(
        self, settings: Settings, intents: discord.Intents, gateway: "Gateway", press: Press
    ) -> None:
        super().__init__(settings, intents, enable_debug_events=True)
        self.is_begun = asyncio.Event()
        self.is_up = asyncio.Event()
        self.is_down = asyncio.Event()
        self._gateway = gateway
        self._press = press

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        if not initial:
            raise SessionOverError("the session is over")
        self._gateway.identified()

    async def on_socket_raw_receive(self, _: str) -> None:
        if self.is_up.is_set():
            self._gateway.heard()

    async def on_message(self, message: discord.Message) -> None:
        self._gateway.intake.offer(message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        await self._press(interaction)

    async def on_ready(self) -> None:
        self.rise()
        self.is_begun.set()

    async def on_resumed(self) -> None:
        self.rise()

    async def on_disconnect(self) -> None:
        self.is_up.clear()
        self.is_down.set()
        self._gateway.lost()

    def rise(self) -> None:
        self.is_down.clear()
        self.is_up.set()
        self._gateway.heard()

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        log.exception("event left out", event_name=event_method, error_id=secrets.token_hex(4))


class Gateway:
    def __init__(
        self, settings: Settings, intake: Intake, signs: Signs, patience: Patience, clock: Clock
    ) -> None:
        self.intake = intake
        self._settings = settings
        self._signs = signs
        self._patience = patience
        self._clock = clock
        self._intents = INTENTS
        self._begun = 0
        self._since: datetime | None = None

    async def run(self, me: int, press: Press) -> None:
        """Until it is cancelled. Raises TokenRefusedError."""
        await until_one_fails(self.intake.work(), self._rounds(me, press))

    async def _rounds(self, me: int, press: Press) -> None:
        while True:
            await self._patience.insist(lambda: self._round(me, press))

    async def _round(self, me: int, press: Press) -> None:
        """One session from its beginning to its end."""
        self._since = None
        await self.intake.open(me)
        ears = Ears(self._settings, self._intents, self, press)
        try:
            await ears.login(self._settings.token)
            await self._may_begin(ears)
            await until_one_fails(_connect(ears), self._watch(ears), self._read_on(ears))
        except discord.PrivilegedIntentsRequired:
            self._intents = FEWER_INTENTS
            raise
        except SessionOverError as error:
            log.info("discord", state="session over", detail=str(error))
        finally:
            await ears.end()
            if self._since and self._clock.now() - self._since > STEADY:
                self._begun = 0

    async def _may_begin(self, ears: Ears) -> None:
        if self._begun:
            pause = min(LONGEST_PAUSE, LEAST_PAUSE * 2.0 ** min(self._begun, 10))
            await self._clock.sleep(LEAST_PAUSE + jittered(pause))
        _, _, limit = await ears.http.get_bot_gateway()
        if limit["remaining"] <= RESERVE:
            raise SpentError(limit["remaining"], limit["reset_after"] / 1000)

    async def _read_on(self, ears: Ears) -> None:
        """With a new session: nobody brings what was said before it."""
        await ears.is_begun.wait()
        self._since = self._clock.now()
        await self.intake.catch_up()

    async def _watch(self, ears: Ears) -> None:
        """Ends when the connection was down for too long."""
        ears.is_down.set()
        while True:
            await ears.is_down.wait()
            up = asyncio.create_task(ears.is_up.wait())
            late = asyncio.create_task(self._clock.sleep(RESUME_SECONDS))
            try:
                await asyncio.wait((up, late), return_when=asyncio.FIRST_COMPLETED)
            finally:
                up.cancel()
                late.cancel()
            if not ears.is_up.is_set():
                raise SessionOverError("no connection for too long")

    def identified(self) -> None:
        self._begun += 1

    def heard(self) -> None:
        self.intake.is_connected = True
        if self.intake.stuck:
            self._signs.heard()
        else:
            self._signs.receiving()

    def lost(self) -> None:
        self.intake.is_connected = False
        if not self._signs.refused:
            self._signs.enter("connecting", "the connection broke")


async def _connect(ears: Ears) -> None:
    await ears.connect()
    raise SessionOverError("the SDK ended it")
