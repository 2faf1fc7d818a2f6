"""Finds turns that nobody works on and takes them up again; it runs none of them itself."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import structlog

from core.domain.events import Event
from core.domain.keys import platform_of
from core.domain.recovery import recover
from core.domain.state import SessionState
from core.errors import BrokenDataError, ConflictError, StorageError, UnstorableError
from core.ports import Clock, SessionStore
from core.runtime.aside import Aside
from core.runtime.commits import Extras
from core.runtime.retrying import Seldom
from core.runtime.sessions import Sessions

AT_ONCE = 16
SWEEP = 1.0
"""Seconds between looks when nothing nudges."""

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
        self._nudged = asyncio.Event()
        self._seldom = Seldom(clock)
        self._sessions = sessions
        self._store = store
        self._aside = aside
        self._clock = clock

    def nudge(self) -> None:
        """There may be a turn to take."""
        self._nudged.set()

    def reconcile(self, state: SessionState) -> None:
        """Where the last free place is free again, someone may have waited for it."""
        if self._sessions.room == 1:
            self.nudge()

    async def keep_at(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self.run()
            except StorageError as error:
                self._seldom.warn("abandoned turns not read", error)
            except Exception:
                log.exception("abandoned turns not looked for")
            with suppress(TimeoutError):
                async with asyncio.timeout(SWEEP):
                    await self._nudged.wait()
            self._nudged.clear()

    async def run(self) -> int:
        """How many were tried. At start it comes before any message is taken. It takes no more than
        there is room for. Raises StorageError."""
        seen: set[str] = set()
        while (room := min(self._sessions.room, AT_ONCE)) and (
            keys := await self._next(seen, room)
        ):
            seen.update(keys)
            untaken = await self._store.untaken(keys)
            tries = [self._take_up(key, left=key in untaken) for key in keys]
            for outcome in await asyncio.gather(*tries, return_exceptions=True):
                if outcome is not None:
                    raise outcome
        return len(seen)

    async def _next(self, seen: set[str], room: int) -> tuple[str, ...]:
        """A turn that a task of ours works on is not abandoned, even if its lease ran out while the
        database was away or the machine slept."""
        passed_over = seen | set(self._working())
        found = await self._store.abandoned(
            self._clock.now(), room + len(passed_over), self._sessions.platforms
        )
        return tuple(key for key in found if key not in passed_over)[:room]

    async def _take_up(self, key: str, *, left: bool) -> None:
        """Whatever is the matter with one session, the others are taken up. Raises StorageError."""
        try:
            await self._try_to_take_up(key, left=left)
        except StorageError:
            raise
        except Exception:
            log.exception("turn not taken up", key=key)

    async def _try_to_take_up(self, key: str, *, left: bool) -> None:
        """One that was left to us was not broken off by anybody."""

        def decision(state: SessionState, at: datetime) -> tuple[Event, ...]:
            return recover(state, at, "crash", self._sessions.policy)

        try:
            if left or not await self._sessions.change(key, decision, Extras(lease="take")):
                await self._sessions.take(key)
        except ConflictError as error:
            log.info("turn taken up by another", key=key, error=str(error))
        except BrokenDataError as error:
            await self._aside.put(key, error)
        except UnstorableError as error:
            log.error("turn cannot be taken up", key=key, error=str(error))  # noqa: TRY400
        else:
            log.info("turn taken" if left else "turn taken up again", key=key)
            what = "handover" if left else "recovery"
            self._sessions.telemetry.count(what, platform_of(key))

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
