"""Whether every message taken is accounted for, looked at by the clock; it mends nothing."""

import structlog

from core.domain.ledger import Ledger
from core.errors import StorageError
from core.ports import Directory

log = structlog.get_logger(__name__)


class Audit:
    """Says a change once, and remembers it for who asks."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.ledger: dict[str, Ledger] = {}
        """As it was last read."""

    @property
    def alarms(self) -> tuple[str, ...]:
        return tuple(
            f"{platform}: {ledger.verdict}"
            for platform, ledger in self.ledger.items()
            if not ledger.balanced
        )

    async def look(self) -> None:
        """Safe late, early, twice and on two machines. Never raises: an account that cannot be read
        makes nothing worse."""
        try:
            now = await self._directory.ledger()
        except StorageError as error:
            log.warning("ledger not read", error=str(error))
            return
        except Exception:
            log.exception("ledger not read")
            return
        before, self.ledger = self.ledger, now
        for platform, ledger in now.items():
            _tell(platform, before.get(platform, Ledger()), ledger)


def _tell(platform: str, before: Ledger, now: Ledger) -> None:
    if before.missing == now.missing:
        return
    if now.balanced:
        log.info("every message is accounted for again", platform=platform, **now.numbers)
    else:
        log.error(
            "messages are not accounted for; see `stillhere doctor --ledger`",
            platform=platform,
            missing=now.missing,
            **now.numbers,
        )
