"""Finds turns that nobody works on and takes them up again; it runs none of them itself."""

from datetime import datetime

import structlog

from core.domain.events import Event
from core.domain.recovery import recover
from core.domain.state import SessionState
from core.errors import BrokenDataError, ConflictError
from core.ports import Clock, SessionStore
from core.runtime.aside import Aside
from core.runtime.commits import Extras
from core.runtime.sessions import Sessions

log = structlog.get_logger(__name__)


class Recovery:
    def __init__(self, sessions: Sessions, store: SessionStore, aside: Aside, clock: Clock) -> None:
        self._sessions = sessions
        self._store = store
        self._aside = aside
        self._clock = clock

    async def run(self) -> int:
        """How many were taken up. At start it comes before any message is taken, and then as often
        as leases last. Raises StorageError."""
        keys = await self._store.abandoned(self._clock.now())
        taken = [await self._take_up(key) for key in keys if self._sessions.serves(key)]
        return sum(taken)

    async def _take_up(self, key: str) -> bool:
        def decision(state: SessionState, at: datetime) -> tuple[Event, ...]:
            return recover(state, at, "crash", self._sessions.policy)

        try:
            if not await self._sessions.change(key, decision, Extras(lease="take")):
                await self._sessions.take(key)
        except ConflictError as error:
            log.info("turn taken up by another", key=key, error=str(error))
            return False
        except BrokenDataError as error:
            await self._aside.put(key, error)
            return False
        log.info("turn taken up again", key=key)
        return True

    async def interrupt(self, keys: tuple[str, ...]) -> None:
        """At a stop: stores where these turns stood. Raises StorageError."""

        def decision(state: SessionState, at: datetime) -> tuple[Event, ...]:
            return recover(state, at, "shutdown", self._sessions.policy)

        for key in keys:
            try:
                await self._sessions.change(key, decision, Extras(lease="let go"))
            except ConflictError as error:
                log.info("turn is another's by now", key=key, error=str(error))
