"""What has to be done by the clock; each job is safe late, early, twice and on two machines."""

from collections.abc import Callable
from datetime import datetime

import structlog

from core.domain import inputs as ask
from core.domain.outputs import Timer, timers
from core.errors import (
    BrokenDataError,
    ConflictError,
    IllegalEventError,
    StorageError,
    UnstorableError,
)
from core.ports import Clock, Timers
from core.runtime.recovery import Recovery
from core.runtime.retrying import Seldom
from core.runtime.sessions import Sessions

log = structlog.get_logger(__name__)


class Jobs:
    """``working`` tells the keys of the sessions that this process is at work on."""

    def __init__(
        self,
        sessions: Sessions,
        recovery: Recovery,
        timers: Timers,
        clock: Clock,
        working: Callable[[], tuple[str, ...]],
    ) -> None:
        self._sessions = sessions
        self._recovery = recovery
        self._timers = timers
        self._clock = clock
        self._working = working
        self._seldom = Seldom(clock)

    async def fire_due(self) -> None:
        """Resets, reminders and the end of waits; those of a platform that is not set up here wait
        for it."""
        now, served = self._clock.now(), self._sessions.platforms
        try:
            for timer in await self._timers.due(now, platforms=served):
                await self._fire(timer, now)
        except StorageError as error:
            self._seldom.warn("timers not read", error)

    async def _fire(self, timer: Timer, now: datetime) -> None:
        """Whatever is the matter with one, the others ring. Raises StorageError."""
        try:
            await self._ring(timer, now)
        except StorageError:
            raise
        except Exception:
            log.exception("timer not fired", timer=timer.id)

    async def _ring(self, timer: Timer, now: datetime) -> None:
        try:
            if not await self._sessions.ask(timer.key, _wish(timer, now)):
                await self._clear_stale(timer)
        except ConflictError as error:
            log.info("timer is another's", timer=timer.id, error=str(error))
            return
        except UnstorableError as error:
            self._seldom.warn(f"timer {timer.id} cannot be answered", error)
            return
        except BrokenDataError as error:
            await self._recovery.give_up(timer.key, error)
            await self._timers.clear(timer)
        except IllegalEventError:
            log.exception("timer of a broken session", timer=timer.id)
            await self._timers.clear(timer)

    async def _clear_stale(self, timer: Timer) -> None:
        """What the session still waits for stays, however often it is asked too early."""
        state = await self._sessions.state(timer.key)
        if timers(state, self._sessions.policy).get(timer.id) != timer:
            await self._timers.clear(timer)

    async def renew_leases(self) -> None:
        """The database is left alone where there is none to renew."""
        working = self._working()
        if not working:
            return
        try:
            await self._sessions.renew(working)
        except StorageError as error:
            self._seldom.warn("leases not renewed", error)


def _wish(timer: Timer, now: datetime) -> ask.Input:
    match timer.kind:
        case "idle" | "daily":
            return ask.Expire(at=now)
        case "reminder":
            return ask.Remind(at=now, reminder_id=timer.data)
        case "wake":
            return ask.Wake(at=now, turn=int(timer.data))
