"""Has one message stored after another, whichever way they came; it answers no one."""

import secrets
from collections import Counter
from collections.abc import Awaitable, Callable

import structlog

from bots.platforms.signs import Signs
from core.domain.messages import Inbound
from core.errors import StorageError, UnstorableError

MOST_TRIES = 5
"""How often a message may break what stores it, before it is left out to let the others pass."""

log = structlog.get_logger(__name__)


class Taker:
    def __init__(self, accept: Callable[[Inbound], Awaitable[None]], signs: Signs) -> None:
        self._accept = accept
        self._signs = signs
        self._broken = Counter[str]()

    async def take(self, inbound: Inbound) -> None:
        """When it returns, the platform may forget the message. Raises StorageError: it may not."""
        try:
            await self._accept(inbound)
        except UnstorableError as error:
            self._count(inbound.update_id, error)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad message must not stop all
            self._count(inbound.update_id, error)
        self._signs.inbound()
        self._broken.pop(inbound.update_id, None)

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
