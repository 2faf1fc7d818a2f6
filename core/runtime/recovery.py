"""Finds turns that nobody works on and takes them up again; it runs none of them itself."""

from collections.abc import Callable
from datetime import datetime

import structlog

from core.domain.events import Event
from core.domain.recovery import recover
from core.domain.state import SessionState
from core.errors import BrokenDataError, ConflictError, StorageError, UnstorableError
from core.ports import Clock, SessionStore
from core.runtime.aside import Aside
from core.runtime.commits import Extras
from core.runtime.sessions import Sessions

AT_ONCE = 100

log = structlog.get_logger(__name__)


class Recovery:
    def __init__(
        self,
        sessions: Sessions,
        store: SessionStore,
        aside: Aside,
        clock: Clock,
        working: Callable[[], tuple[str, ...]],
    ) -> None:
        """``working`` tells the keys of the sessions that this process is at work on."""
        self._working = working
        self._sessions = sessions
        self._store = store
        self._aside = aside
        self._clock = clock

    async def run(self) -> int:
        """How many were taken up. At start it comes before any message is taken, and then as often
        as leases last. Raises StorageError."""
        seen: set[str] = set()
        while keys := await self._next(seen):
            seen.update(keys)
            for key in keys:
                await self._take_up(key)
        return len(seen)

    async def _next(self, seen: set[str]) -> tuple[str, ...]:
        """A turn that a task of ours works on is not abandoned, even if its lease ran out while the
        database was away or the machine slept."""
        passed_over = seen | set(self._working())
        found = await self._store.abandoned(
            self._clock.now(), AT_ONCE + len(passed_over), self._sessions.platforms
        )
        return tuple(key for key in found if key not in passed_over)

    async def _take_up(self, key: str) -> None:
        """Whatever is the matter with one session, the others are taken up. Raises StorageError."""
        try:
            await self._try_to_take_up(key)
        except StorageError:
            raise
        except Exception:
            log.exception("turn not taken up", key=key)

    async def _try_to_take_up(self, key: str) -> None:
        def decision(state: SessionState, at: datetime) -> tuple[Event, ...]:
            return recover(state, at, "crash", self._sessions.policy)

        try:
            if not await self._sessions.change(key, decision, Extras(lease="take")):
                await self._sessions.take(key)
        except ConflictError as error:
            log.info("turn taken up by another", key=key, error=str(error))
        except BrokenDataError as error:
            await self._aside.put(key, error)
        except UnstorableError as error:
            log.error("turn cannot be taken up", key=key, error=str(error))  # noqa: TRY400
        else:
            log.info("turn taken up again", key=key)

    async def give_up(self, key: str, error: BrokenDataError) -> None:
        """Puts a conversation that cannot be read out of the way. Raises StorageError."""
        await self._aside.put(key, error)

    async def interrupt(self, keys: tuple[str, ...]) -> None:
        """At a stop: stores where these turns stood. Raises StorageError."""

        def decision(state: SessionState, at: datetime) -> tuple[Event, ...]:
            return recover(state, at, "shutdown", self._sessions.policy)

        for key in keys:
            try:
                if not await self._sessions.change(key, decision, Extras(lease="let go")):
                    await self._sessions.let_go(key)
            except ConflictError as error:
                log.info("turn is another's by now", key=key, error=str(error))
            except BrokenDataError as error:
                log.warning("left for the next start", key=key, error=str(error))
            except StorageError:
                raise
            except Exception:
                log.exception("left for the next start", key=key)
