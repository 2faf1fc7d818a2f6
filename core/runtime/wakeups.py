"""Hears what other processes did, and wakes whom it concerns; each of them looks for itself."""

import asyncio
from collections.abc import Callable

import structlog

from core.errors import StorageError
from core.ports import Notification, Notifications
from core.runtime.sessions import Sessions

log = structlog.get_logger(__name__)


class Wakeups:
    def __init__(
        self,
        notifications: Notifications,
        sessions: Sessions,
        turns: Callable[[], None],
        leases: Callable[[], None],
    ) -> None:
        """``turns`` is called when a turn may be there to take, ``leases`` when a named lease may
        be."""
        self._notifications = notifications
        self._sessions = sessions
        self._turns = turns
        self._leases = leases
        self._looks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            await self._notifications.listen(self._hear)
        finally:
            for look in self._looks:
                look.cancel()
            await asyncio.gather(*self._looks, return_exceptions=True)

    def _hear(self, news: Notification) -> None:
        match news.kind:
            case "turn":
                self._turns()
            case "lease":
                self._leases()
            case "session":
                self._look_at(news.name)
            case "all":
                self._turns()
                self._leases()
                for key in tuple(self._sessions.held):
                    self._look_at(key)

    def _look_at(self, key: str) -> None:
        if key in self._sessions.held:
            look = asyncio.create_task(self._look(key))
            self._looks.add(look)
            look.add_done_callback(self._looks.discard)

    async def _look(self, key: str) -> None:
        try:
            await self._sessions.renew((key,))
        except StorageError as error:
            log.info("not looked at", key=key, error=str(error))
        except Exception:
            log.exception("not looked at", key=key)
