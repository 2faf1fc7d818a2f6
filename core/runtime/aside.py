"""Puts a conversation that cannot be read out of the way; never deletes it, never stays silent."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

import structlog

from core.domain import events as ev
from core.domain.keys import Address
from core.errors import BrokenDataError, ConflictError, StorageError
from core.ports import Quarantine, Store
from core.runtime.sessions import Sessions

SALVAGED = 50
"""Events at either end of the log among which someone to tell is looked for."""

log = structlog.get_logger(__name__)


class Aside:
    def __init__(self, sessions: Sessions, store: Store, quarantine: Quarantine) -> None:
        self._sessions = sessions
        self._store = store
        self._quarantine = quarantine
        self._copies: set[asyncio.Task[None]] = set()
        self._begun: set[str] = set()
        """Logs whose copy was begun in this life."""

    async def put(self, key: str, error: BrokenDataError, who: Address | None = None) -> None:
        """Tells ``who``, or the person that the log still names. Raises StorageError."""
        known = who or await self._somebody(key)
        try:
            kept_as = await self._sessions.set_aside(key, known)
        except ConflictError as conflict:
            log.info("another was first", key=key, error=str(conflict))
            return
        if kept_as is None:
            log.info("log can be read by now", key=key, error=str(error))
            return
        log.error("session set aside", key=key, kept_as=kept_as, error=str(error))
        if known is None:
            log.error("nobody could be told of it", key=key, kept_as=kept_as)
        self._begin(self._copy(kept_as, str(error)))

    def catch_up(self) -> None:
        """At a start, in the background: copies what a process that died did not get to copy."""
        self._begin(self._copy_missing())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._copies.add(task)
        task.add_done_callback(self._copies.discard)

    async def finish(self, seconds: float) -> None:
        """Before a stop: lets copies be written for so long."""
        if self._copies:
            await asyncio.wait(self._copies, timeout=seconds)
        for task in self._copies:
            task.cancel()
        await asyncio.gather(*self._copies, return_exceptions=True)

    async def _copy_missing(self) -> None:
        try:
            missing = await self._quarantine.missing(await self._store.asides())
        except StorageError as error:
            log.warning("not looked for bundles that are missing", error=str(error))
            return
        for kept_as in missing:
            await self._copy(kept_as, "there was no bundle of it at a start")

    async def _copy(self, kept_as: str, why: str) -> None:
        """Nobody waits for it, and nothing depends on it: the database keeps the log."""
        if kept_as in self._begun:
            return
        self._begun.add(kept_as)
        try:
            bundle = await self._quarantine.keep(kept_as, why)
        except StorageError as error:
            log.error("no bundle of it", kept_as=kept_as, error=str(error))  # noqa: TRY400
        except Exception:
            log.exception("no bundle of it", kept_as=kept_as)
        else:
            log.warning("quarantined", kept_as=kept_as, bundle=bundle)

    async def _somebody(self, key: str) -> Address | None:
        """The newest who can be made out, since it is they who wait for something."""
        for seq in await self._places(key):
            try:
                found = await self._store.events(key, seq, seq)
            except BrokenDataError:
                continue
            for recorded in found:
                if isinstance(recorded.event, ev.MessageReceived):
                    return recorded.event.inbound.address
        return None

    async def _places(self, key: str) -> Iterable[int]:
        head = await self._store.raw_head(key)
        if head is None:
            return ()
        known = (head.tail, head.stream["seq"])
        last = max(SALVAGED, *(number for number in known if isinstance(number, int)))
        newest = range(last, max(last - SALVAGED, 0), -1)
        return dict.fromkeys((*newest, *range(1, SALVAGED + 1)))
