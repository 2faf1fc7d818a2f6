"""Takes a platform's message through the gate, into one commit; it never acts on it."""

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

import structlog
from msgspec.structs import replace

from core.commands.base import Command, CommandContext
from core.domain import events as ev
from core.domain import inputs as ask
from core.domain.decide import decide
from core.domain.draft import Draft
from core.domain.events import Event, Role
from core.domain.keys import session_key
from core.domain.lifecycle import start_next
from core.domain.messages import LONGEST_QUOTE, Inbound
from core.domain.outputs import inbox_id
from core.domain.spending import Bill
from core.domain.state import SessionState
from core.domain.values import clean
from core.errors import BrokenDataError, ConflictError, DuplicateError, StorageError
from core.runtime.access import Access
from core.runtime.aside import Aside
from core.runtime.budget import Budget
from core.runtime.commits import Extras
from core.runtime.sessions import Decision, Sessions

_COMMAND = re.compile(r"/([a-z_]+)(?:\s+(.*))?", re.DOTALL | re.IGNORECASE)

OwnerSeen = Callable[[Inbound, bool], Awaitable[None]]

SECOND_THOUGHTS = 5
"""Someone else may have become the owner meanwhile, so that the message means another thing."""

log = structlog.get_logger(__name__)


class Admission:
    def __init__(
        self,
        sessions: Sessions,
        access: Access,
        commands: Mapping[str, Command],
        aside: Aside,
        budget: Budget,
    ) -> None:
        self._sessions = sessions
        self._access = access
        self._commands = commands
        self._aside = aside
        self._budget = budget
        self._owner_seen: list[OwnerSeen] = []

    def subscribe(self, seen: OwnerSeen) -> None:
        """It is awaited when a message of the owner is on disk, before the platform is told so; it
        is told whether that message made them the owner. It raises StorageError."""
        self._owner_seen.append(seen)

    async def accept(self, inbound: Inbound) -> None:
        """Returns when the message is on disk, or was there already: only then may the platform be
        told that we have it. Raises StorageError: then it must not be told."""
        inbound = replace(
            inbound,
            text=clean(inbound.text),
            user_name=clean(inbound.user_name),
            quote=clean(inbound.quote[:LONGEST_QUOTE]),
        )
        key = str(session_key(inbound.address, inbound.user))
        for _ in range(SECOND_THOUGHTS):
            role, claims = await self._standing(inbound)
            decision = await self._decision(inbound, role, claims=claims)
            try:
                await self._sessions.change(key, decision, Extras(inbox=inbox_id(inbound)))
            except DuplicateError:
                log.info("duplicate update", key=key, update_id=inbound.update_id)
            except BrokenDataError as error:
                await self._aside.put(key, error, inbound.address)
                continue
            except ConflictError as error:
                log.info("another was first", key=key, error=str(error))
                continue
            for seen in self._owner_seen if claims or role == "owner" else ():
                await seen(inbound, claims)
            return
        raise StorageError(f"{key}: in vain {SECOND_THOUGHTS} times in a row")

    async def _standing(self, inbound: Inbound) -> tuple[Role | None, bool]:
        """The sender's role, and whether this message claims the bot."""
        role = await self._access.role(inbound)
        name, argument, _ = _command(inbound)
        may_claim = name == "start" and role not in ("owner", "denied")
        return role, may_claim and await self._access.claims(inbound, argument)

    async def _decision(self, inbound: Inbound, role: Role | None, *, claims: bool) -> Decision:
        name, argument, is_command = _command(inbound)
        if role in (None, "denied") and not claims:
            return lambda state, at: decide(
                state, ask.Refuse(at=at, inbound=inbound), self._sessions.policy
            )
        if not is_command:
            return lambda state, at: decide(
                state, ask.Receive(at=at, inbound=inbound), self._sessions.policy
            )
        context = CommandContext(
            inbound=inbound,
            argument=argument,
            role=role,
            claims=claims,
            owner=await self._access.owner() if name in self._commands else "",
            commands=self._commands,
            bill=await self._bill(name, inbound, role),
        )
        return self._run(name, context)

    async def _bill(self, name: str, inbound: Inbound, role: Role | None) -> Bill | None:
        command = self._commands.get(name)
        if command is None or not command.asks_bill:
            return None
        return await self._budget.bill(inbound, whole=role == "owner")

    def _run(self, name: str, context: CommandContext) -> Decision:
        def decision(state: SessionState, at: datetime) -> tuple[Event, ...]:
            draft = Draft(state, at, self._sessions.policy)
            text = self._reply(name, draft, context)
            draft.add(ev.CommandAnswered(inbound=context.inbound, command=name, text=text))
            start_next(draft)
            return draft.events

        return decision

    def _reply(self, name: str, draft: Draft, context: CommandContext) -> str:
        command = self._commands.get(name)
        if command is None:
            return f"I don't know `/{name}`. /help lists what I understand."
        if command.owner_only and context.role != "owner":
            return f"Only the owner may use `/{name}`."
        return command.run(draft, context)


def _command(inbound: Inbound) -> tuple[str, str, bool]:
    """Its name and what stands behind it; whether it is one at all."""
    match = _COMMAND.fullmatch(inbound.text.strip())
    return (match[1].lower(), (match[2] or "").strip(), True) if match else ("", "", False)
