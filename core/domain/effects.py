"""What a state wants done next; a pure question, asked again after each commit and restart."""

from datetime import datetime, timedelta
from itertools import takewhile
from typing import assert_never

import msgspec

from core.domain.messages import ToolCall
from core.domain.policy import Policy
from core.domain.state import Phase, SessionState, Turn

ALONE_FROM = 3
"""From this attempt on a turn runs while no other does, so that a killer is told from victims."""


class TryTurn(msgspec.Struct, frozen=True):
    """Count an attempt, then go on; not before that time, where there is one."""

    turn: int
    not_before: datetime | None
    alone: bool


class ReadFiles(msgspec.Struct, frozen=True):
    """Read what came with the message at ``source``. ``unopened``: it is said to be unreadable
    instead, since it may be what breaks the process."""

    turn: int
    source: int
    unopened: bool = False
    alone: bool = False


class CallModel(msgspec.Struct, frozen=True):
    turn: int
    step: int
    alone: bool = False


class RunTool(msgspec.Struct, frozen=True):
    turn: int
    step: int
    call: ToolCall
    alone: bool = False


class AwaitTool(msgspec.Struct, frozen=True):
    """The call is running: whoever stored its start brings its end."""

    turn: int
    step: int
    call_id: str


class AwaitSummary(msgspec.Struct, frozen=True):
    """What is older is being summed up, since the request did not fit with all of it."""

    turn: int


class Sleep(msgspec.Struct, frozen=True):
    turn: int
    until: datetime


Effect = TryTurn | ReadFiles | CallModel | RunTool | AwaitTool | AwaitSummary | Sleep


def next_effects(state: SessionState, policy: Policy) -> tuple[Effect, ...]:
    """() exactly when no turn is open."""
    turn = state.turn
    if turn is None:
        return ()
    match state.phase:
        case Phase.QUEUED | Phase.INTERRUPTED:
            return (_try(turn, policy),)
        case Phase.THINKING if is_summed_up(state):
            return (AwaitSummary(turn.number),)
        case Phase.THINKING:
            return _think(turn, policy)
        case Phase.ACTING:
            return _tools(turn)
        case Phase.WAITING:
            return (Sleep(turn.number, turn.wait_until or turn.started_at),)
        case Phase.CLOSED | Phase.IDLE | Phase.SUSPENDED:
            return ()
        case _:
            assert_never(state.phase)


def is_summed_up(state: SessionState) -> bool:
    """Whether the open turn waits for it."""
    session = state.session
    wanted = session.compaction if session else None
    return wanted is not None and wanted.reason == "too_long"


def _think(turn: Turn, policy: Policy) -> tuple[ReadFiles | CallModel, ...]:
    alone = turn.attempt >= ALONE_FROM
    unopened = turn.attempt > 1 and turn.attempt >= policy.turn_max_attempts
    return tuple(ReadFiles(turn.number, source.seq, unopened, alone) for source in turn.unread) or (
        CallModel(turn.number, turn.step, alone),
    )


def _try(turn: Turn, policy: Policy) -> TryTurn:
    if turn.status == "queued" and any(source.album for source in turn.sources):
        return TryTurn(
            turn.number, turn.started_at + timedelta(seconds=policy.album_wait), alone=False
        )
    delays = policy.attempt_delays
    delay = delays[min(turn.attempt, len(delays) - 1)] if delays else 0.0
    since = turn.paused_at if delay else None
    not_before = since + timedelta(seconds=delay) if since else None
    return TryTurn(turn.number, not_before, turn.attempt + 1 >= ALONE_FROM)


def _tools(turn: Turn) -> tuple[Effect, ...]:
    """Read-only calls that stand side by side run side by side; every other call runs alone, in
    the model's order."""
    read_only = tuple(takewhile(lambda call: call.effect == "read_only", turn.open_calls))
    front = read_only or turn.open_calls[:1]
    alone = turn.attempt >= ALONE_FROM
    return tuple(
        RunTool(turn.number, turn.step, call.call, alone)
        if call.status == "pending"
        else AwaitTool(turn.number, turn.step, call.call.id)
        for call in front
    )
