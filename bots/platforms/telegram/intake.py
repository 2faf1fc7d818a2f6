"""Takes one update at a time, read and stored, whichever way it came; it answers no one."""

import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from telegram import Bot, Update

from bots.platforms.telegram.translate import Me, inbound
from core.domain.messages import Inbound
from core.errors import StorageError

MOST_TRIES = 5
"""How often an update may break what stores it, before it is left out to let the others pass."""

log = structlog.get_logger(__name__)


class Intake:
    def __init__(self, accept: Callable[[Inbound], Awaitable[None]], bot: Bot) -> None:
        self._accept = accept
        self._bot = bot
        self._me: Me | None = None
        self._broken = Counter[str]()

    @property
    def ready(self) -> bool:
        return self._me is not None

    def introduce(self, me: Me) -> None:
        """Until then nothing can be taken: mentions of us could not be told from others."""
        self._me = me

    async def take(self, raw: Mapping[str, Any]) -> None:
        """When it returns, Telegram may forget the update. Raises StorageError: it may not."""
        taken = self._read(raw)
        if taken is None:
            return
        try:
            await self._accept(taken)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad update must not stop all
            self._count(taken.update_id, error)
        self._broken.pop(taken.update_id, None)

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

    def _count(self, update_id: str, error: Exception) -> None:
        """Raises StorageError while it is to be tried again."""
        self._broken[update_id] += 1
        tries, error_id = self._broken[update_id], secrets.token_hex(4)
        log.error(
            "update not stored, which is a bug",
            update_id=update_id,
            error_id=error_id,
            tries=tries,
            left_out=tries >= MOST_TRIES,
            exc_info=error,
        )
        if tries < MOST_TRIES:
            raise StorageError(f"error {error_id}") from error
