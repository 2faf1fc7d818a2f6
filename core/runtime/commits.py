"""From a decision to the one value that is stored; pure, it writes nothing."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from core.domain import notices
from core.domain.events import Event, Recorded
from core.domain.fold import fold
from core.domain.ledger import owed
from core.domain.messages import OutboxMessage
from core.domain.outputs import InboxId, Said, outputs, timers
from core.domain.policy import Policy
from core.domain.recovery import faults
from core.domain.state import SessionState
from core.errors import IllegalEventError
from core.ports import Artifact, Channel, Commit, Lease
from core.runtime.holder import Holder

MAX_PARTS = 40
"""A degenerate answer is cut here, and says so; the log keeps the whole."""


class Extras(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored beside the events. The lease is taken by who opens a turn; «take» asks for it
    where one is open already, «let go» ends it now."""

    inbox: InboxId | None = None
    lease: Literal["if opened", "take", "let go"] = "if opened"
    artifacts: tuple[Artifact, ...] = ()


class Standing(msgspec.Struct, frozen=True):
    """Between this process and a session: ``stream`` is the log's number; ``held``: the lease is
    ours; ``room``: we may begin one more turn."""

    stream: int
    held: bool = False
    room: bool = True


def record(before: SessionState, events: tuple[Event, ...], at: datetime) -> tuple[Recorded, ...]:
    """The events with the numbers that follow the state's."""
    return tuple(Recorded(seq, at, event) for seq, event in enumerate(events, before.seq + 1))


def is_open(state: SessionState) -> bool:
    """Whether someone has to work on the session; a turn that waits is woken by its timer."""
    at_work = state.turn is not None and state.turn.status != "waiting"
    return at_work or (state.session is not None and state.session.compaction is not None)


def _begins(before: SessionState, after: SessionState) -> bool:
    """Whether there is work after the commit that was not there before it."""
    if not is_open(before):
        return True
    number = before.turn.number if before.turn else 0
    return after.turn is not None and after.turn.number != number


class CommitBuilder:
    """Knows how each platform renders, the operator's numbers and who takes leases."""

    def __init__(self, channels: Mapping[str, Channel], policy: Policy, holder: Holder) -> None:
        self._channels = channels
        self._policy = policy
        self._holder = holder

    def build(
        self,
        before: SessionState,
        events: tuple[Event, ...],
        at: datetime,
        extras: Extras,
        standing: Standing,
    ) -> tuple[SessionState, Commit]:
        """The state after the events, too. Raises IllegalEventError, also for a state that the next
        start could not believe: it must not be stored."""
        log = record(before, events, at)
        after = fold(before, log)
        if unsound := faults(after):
            raise IllegalEventError(f"{before.key}@{after.seq}: {'; '.join(unsound)}")
        out = outputs(before, log, self._policy)
        had, wanted = timers(before, self._policy), timers(after, self._policy)
        every = self._policy.snapshot_every
        return after, Commit(
            key=before.key,
            expected_seq=before.seq,
            at=at,
            log=log,
            stream=standing.stream,
            session_id=after.session.session_id if after.session else "",
            open_turn=is_open(after),
            owed=owed(after),
            inbox=extras.inbox,
            settled=out.settled,
            outbox=tuple(row for said in out.said for row in self._rows(before.key, said)),
            timers=tuple(timer for name, timer in wanted.items() if had.get(name) != timer),
            cleared=tuple(name for name in had if name not in wanted),
            access=out.access,
            artifacts=extras.artifacts,
            lease=self._lease(before, after, at, extras, standing),
            snapshot=after if after.seq // every > before.seq // every else None,
            spent=out.spent,
            marks=out.marks,
        )

    def _lease(
        self,
        before: SessionState,
        after: SessionState,
        at: datetime,
        extras: Extras,
        standing: Standing,
    ) -> Lease | None:
        """None where it stays whose it is, also where nobody has it and we have no room."""
        if not is_open(after):
            return None
        left = _begins(before, after) and not standing.room
        if extras.lease == "let go" or (left and standing.held):
            return Lease(self._holder.owner, at, standing.held)
        if left or not (standing.held or standing.room):
            return None
        if extras.lease == "if opened" and is_open(before):
            return None
        return self._holder.lease(at, held=standing.held)

    def _rows(self, key: str, said: Said) -> tuple[OutboxMessage, ...]:
        channel = self._channels[said.address.platform]
        parts = channel.render(said.text) or channel.render(notices.EMPTY_ANSWER)
        if len(parts) > MAX_PARTS:
            parts = (*parts[: MAX_PARTS - 1], *channel.render(notices.ANSWER_CAPPED))
        parts = (*parts[:-1], replace(parts[-1], buttons=said.buttons))
        return tuple(
            OutboxMessage(
                id=f"{key}@{said.seq}.{number}",
                key=key,
                address=said.address,
                kind=said.kind,
                part=part,
                edits=said.edits if number == 1 else "",
                turn=said.turn,
            )
            for number, part in enumerate(parts, 1)
        )
