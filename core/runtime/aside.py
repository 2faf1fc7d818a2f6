"""Puts a conversation that cannot be read out of the way; never deletes it, never stays silent."""

import asyncio
from collections.abc import Iterable
from datetime import datetime

import structlog

from core.domain import events as ev
from core.domain.events import Event
from core.domain.keys import Address
from core.domain.lifecycle import Draft
from core.domain.messages import Inbound
from core.domain.outputs import inbox_id
from core.domain.state import SessionState
from core.errors import BrokenDataError, DuplicateError, StorageError
from core.ports import Quarantine, Store
from core.runtime.commits import Extras
from core.runtime.sessions import Decision, Sessions

SALVAGED = 50
"""Events at either end of the log among which someone to tell is looked for."""

log = structlog.get_logger(__name__)


class Aside:
    def __init__(self, sessions: Sessions, store: Store, quarantine: Quarantine) -> None:
        self._sessions = sessions
        self._store = store
        self._quarantine = quarantine
        self._copies: set[asyncio.Task[None]] = set()

    async def put(self, key: str, error: BrokenDataError) -> None:
        """Tells the person, if the log still says who that is. Raises StorageError."""
        known = await self._somebody(key)
        reference = await self._move(key, error)
        if reference is None:
            return
        if known is None:
            log.error("nobody could be told of it", key=key, reference=reference)
            return
        notice = ev.SessionSetAside(address=known, reference=reference)
        await self._sessions.change(key, lambda state, at: (notice,))

    async def put_and_answer(
        self, key: str, inbound: Inbound, decision: Decision, error: BrokenDataError
    ) -> None:
        """The message that found it broken is told so, and then answered. Raises StorageError."""
        reference = await self._move(key, error)
        told: tuple[Event, ...] = ()
        if reference is not None:
            told = (ev.SessionSetAside(address=inbound.address, reference=reference),)

        def both(state: SessionState, at: datetime) -> tuple[Event, ...]:
            draft = Draft(state, at, self._sessions.policy)
            for event in told:
                draft.add(event)
            return (*draft.events, *decision(draft.state, at))

        try:
            await self._sessions.change(key, both, Extras(inbox=inbox_id(inbound)))
        except DuplicateError:
            log.info("duplicate update", key=key, update_id=inbound.update_id)
            await self._sessions.change(key, lambda state, at: told)

    async def finish(self, seconds: float) -> None:
        """Before a stop: lets copies be written for so long."""
        if self._copies:
            await asyncio.wait(self._copies, timeout=seconds)
        for task in self._copies:
            task.cancel()
        await asyncio.gather(*self._copies, return_exceptions=True)

    async def _move(self, key: str, error: BrokenDataError) -> str | None:
        kept_as = await self._sessions.set_aside(key)
        if kept_as is None:
            log.info("log can be read by now", key=key, error=str(error))
            return None
        log.error("session set aside", key=key, kept_as=kept_as, error=str(error))
        task = asyncio.create_task(self._copy(kept_as, str(error)))
        self._copies.add(task)
        task.add_done_callback(self._copies.discard)
        return kept_as.rpartition(":")[2]

    async def _copy(self, kept_as: str, why: str) -> None:
        """Nobody waits for it, and nothing depends on it: the database keeps the log."""
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
        last = max(head.tail, SALVAGED)
        newest = range(last, max(last - SALVAGED, 0), -1)
        return dict.fromkeys((*newest, *range(1, SALVAGED + 1)))
