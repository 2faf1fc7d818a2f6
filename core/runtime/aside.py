"""Puts a conversation that cannot be read out of the way; never deletes it, never stays silent."""

from datetime import datetime

import structlog

from core.domain import events as ev
from core.domain.events import Event
from core.domain.keys import Address
from core.domain.lifecycle import Draft
from core.domain.messages import Inbound
from core.domain.outputs import inbox_id
from core.domain.state import SessionState
from core.errors import BrokenDataError
from core.ports import SessionStore
from core.runtime.commits import Extras
from core.runtime.sessions import Decision, Sessions

SALVAGED = 20
"""Events from the beginning among which someone to tell is looked for."""

log = structlog.get_logger(__name__)


class Aside:
    def __init__(self, sessions: Sessions, store: SessionStore) -> None:
        self._sessions = sessions
        self._store = store

    async def put(self, key: str, error: BrokenDataError) -> None:
        """Tells the person, if the log still says who that is. Raises StorageError."""
        known = await self._somebody(key)
        reference = await self._move(key, error)
        if known is not None and reference is not None:
            notice = ev.SessionSetAside(address=known, reference=reference)
            await self._sessions.change(key, lambda state, at: (notice,))

    async def put_and_answer(
        self, key: str, inbound: Inbound, decision: Decision, error: BrokenDataError
    ) -> None:
        """The message that found it broken is told so, and then answered. Raises StorageError."""
        reference = await self._move(key, error)

        def both(state: SessionState, at: datetime) -> tuple[Event, ...]:
            draft = Draft(state, at, self._sessions.policy)
            if reference is not None:
                draft.add(ev.SessionSetAside(address=inbound.address, reference=reference))
            return (*draft.events, *decision(draft.state, at))

        await self._sessions.change(key, both, Extras(inbox=inbox_id(inbound)))

    async def _move(self, key: str, error: BrokenDataError) -> str | None:
        kept_as = await self._sessions.set_aside(key)
        if kept_as is None:
            return None
        log.error("session set aside", key=key, kept_as=kept_as, error=str(error))
        return kept_as.rpartition(":")[2]

    async def _somebody(self, key: str) -> Address | None:
        for seq in range(1, SALVAGED + 1):
            try:
                found = await self._store.events(key, seq, seq)
            except BrokenDataError:
                continue
            for recorded in found:
                if isinstance(recorded.event, ev.MessageReceived):
                    return recorded.event.inbound.address
        return None
