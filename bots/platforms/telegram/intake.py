"""Reads one update at a time and has it stored, whichever way it came; it answers no one."""

import secrets
from collections.abc import Mapping
from typing import Any

import structlog
from telegram import Bot, Update

from bots.platforms.taker import Taker
from bots.platforms.telegram.translate import Me, inbound
from core.domain.messages import Inbound
from core.errors import StorageError

log = structlog.get_logger(__name__)


class Intake:
    def __init__(self, taker: Taker, bot: Bot) -> None:
        self._taker = taker
        self._bot = bot
        self._me: Me | None = None

    @property
    def ready(self) -> bool:
        return self._me is not None

    def introduce(self, me: Me) -> None:
        """Until then nothing can be taken: mentions of us could not be told from others."""
        self._me = me

    async def take(self, raw: Mapping[str, Any]) -> None:
        """When it returns, Telegram may forget the update. Raises StorageError: it may not."""
        taken = self._read(raw)
        if taken is not None:
            await self._taker.take(taken)

    def _read(self, raw: Mapping[str, Any]) -> Inbound | None:
        """One that cannot be read must not stop those behind it."""
        if self._me is None:
            raise StorageError("the bot does not know its own name yet")
        try:
            return inbound(Update.de_json(dict(raw), self._bot), self._me)
        except Exception:
            log.exception(
                "update left out: it cannot be read, which is a bug of this adapter",
                update_id=raw.get("update_id"),
                error_id=secrets.token_hex(4),
            )
            return None
