"""Reads what Slack brings, live or from history, and has it stored; it answers no one."""

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import structlog
from msgspec.structs import replace

from bots.platforms.slack import translate
from bots.platforms.slack.names import Names
from bots.platforms.slack.places import Places
from bots.platforms.slack.translate import Me
from bots.platforms.taker import Taker
from core.domain.messages import Inbound
from core.errors import StorageError
from core.ports import Clock

HISTORY_SECONDS = 1.5
"""How long what comes live waits for the history before it; Slack wants its ack within three."""
BUG = "message left out: it cannot be read, which is a bug of this adapter"
MESSAGES = frozenset({"app_mention", "message"})

Json = Mapping[str, Any]

log = structlog.get_logger(__name__)


class Intake:
    """``missed`` is set when something could not be stored, so that history has to be read;
    ``stores`` says whether the last message could be."""

    def __init__(
        self, taker: Taker, places: Places, names: Names, clock: Clock, commands: Collection[str]
    ) -> None:
        self.missed = asyncio.Event()
        self.stores = True
        self._taker = taker
        self._places = places
        self._names = names
        self._clock = clock
        self._commands = frozenset(commands)
        self._me: Me | None = None
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def me(self) -> Me:
        """Raises StorageError until we know: mentions of us could not be told from others."""
        if self._me is None:
            raise StorageError("the bot does not know its own name yet")
        return self._me

    def introduce(self, me: Me) -> None:
        self._me = me

    async def take(self, body: Json) -> None:
        """When it returns, Slack may forget it. Raises StorageError: it may not."""
        event: Json = body.get("event") or {}
        if event.get("type") in MESSAGES:
            channel = str(event.get("channel") or "")
            await self._history_first(event, channel)
            async with self._locks[channel]:
                await self._take_live(event, channel)
            return
        inbound = self._of_person(body, self.me)
        if inbound is not None:
            await self._store(inbound)

    async def take_past(self, message: Json, channel: str) -> None:
        """From history; it is known again by its id. Raises StorageError."""
        async with self._locks[channel]:
            inbound = self._of_message(message, channel)
            if inbound is not None:
                await self._learn(message, channel, inbound)
                await self._store(inbound)

    async def _history_first(self, event: Json, channel: str) -> None:
        """After a gap Slack brings the newest before it repeats what nobody took."""
        place = translate.place_of(event, channel)
        with suppress(TimeoutError):
            async with asyncio.timeout(HISTORY_SECONDS):
                await self._places.read(place if self._places.knows(place) else channel)

    async def _take_live(self, event: Json, channel: str) -> None:
        inbound = self._of_message(event, channel)
        if inbound is None:
            return
        place = translate.place_of(event, channel)
        try:
            await self._learn(event, channel, inbound)
            await self._store(inbound)
        except StorageError:
            if self._places.knows(place):
                self._places.fall_behind([place])
            self.missed.set()
            raise
        self._places.passed(place, inbound.message_id)

    async def _learn(self, message: Json, channel: str, inbound: Inbound) -> None:
        """The conversation and, of a mention in a channel, the thread that it opens."""
        place, thread = translate.place_of(message, channel), inbound.address.thread
        for new in (place, f"{channel}:{thread}" if thread else place):
            if not self._places.knows(new):
                await self._learn_new(new, channel, inbound)

    async def _learn_new(self, new: str, channel: str, inbound: Inbound) -> None:
        """More may have been said in a thread while its channel was behind: in private, all of it
        was said to us."""
        first, is_behind = inbound.message_id, self._places.is_behind(channel)
        if is_behind and inbound.address.chat_type == "dm":
            first = max(inbound.address.thread, self._places.mark(channel).first)
        await self._places.learn(new, first)
        if is_behind:
            self._places.fall_behind([new])
        if self._places.is_behind(new):
            self.missed.set()

    async def _store(self, inbound: Inbound) -> None:
        name = await self._names.of(inbound.user)
        try:
            await self._taker.take(replace(inbound, user_name=name))
        except StorageError:
            self.stores = False
            raise
        self.stores = True

    def _of_message(self, message: Json, channel: str) -> Inbound | None:
        """One that cannot be read must not stop those behind it."""
        me = self.me
        try:
            return translate.of_message(message, channel, me, self._commands, self._places.knows)
        except Exception:
            log.exception(BUG, message=message.get("ts"), error_id=secrets.token_hex(4))
            return None

    def _of_person(self, body: Json, me: Me) -> Inbound | None:
        now = self._clock.now()
        try:
            if "command" in body:
                return translate.of_slash(body, me, self._commands, now)
            is_press = body.get("type") == "block_actions"
            return translate.of_button(body, me, now) if is_press else None
        except Exception:
            log.exception(BUG, message=body.get("trigger_id"), error_id=secrets.token_hex(4))
            return None
