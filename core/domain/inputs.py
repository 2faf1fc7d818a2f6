"""What can be asked of a session; wishes, not facts, and possibly too late."""

from datetime import datetime

import msgspec

from core.domain.events import CompactFailure, Event
from core.domain.messages import (
    EffectClass,
    Inbound,
    ModelFailure,
    ModelReply,
    ReadFile,
    RequestSize,
    ToolOutcome,
    Usage,
)
from core.domain.spending import Limit, Meter


class _Input(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime


class Receive(_Input, frozen=True):
    """A person's message that is no command."""

    inbound: Inbound


class Refuse(_Input, frozen=True):
    """A message of a person who may not talk to the agent."""

    inbound: Inbound


class Attempt(_Input, frozen=True):
    """Someone is about to work on the turn."""

    turn: int


class Read(_Input, frozen=True):
    """What came with the message at ``source``, as far as it could be read."""

    turn: int
    source: int
    files: tuple[ReadFile, ...]


class Reply(_Input, frozen=True):
    """``effects`` has one class a call of the reply."""

    turn: int
    step: int
    reply: ModelReply
    effects: tuple[EffectClass, ...] = ()
    size: RequestSize = RequestSize()
    meter: Meter | None = None
    """How it stood before the call, where there are limits."""


class OverBudget(_Input, frozen=True):
    """A limit forbids the call that the turn wants."""

    turn: int
    step: int
    limit: Limit


class Fail(_Input, frozen=True):
    """``asked`` is False where the request was found to be too long before anybody was asked;
    ``hint`` is what the person who asked can do about it."""

    turn: int
    step: int
    failure: ModelFailure
    error_id: str
    size: RequestSize = RequestSize()
    asked: bool = True
    hint: str = ""


class Compact(_Input, frozen=True):
    """Someone is about to make the summary that is wanted."""


class Summarize(_Input, frozen=True):
    """The summary of what stands before ``first_turn``."""

    first_turn: int
    summary: str
    usage: Usage = Usage()


class NotSummarized(_Input, frozen=True):
    """It was tried in vain; ``usage`` is what that cost."""

    first_turn: int
    error_id: str
    usage: Usage = Usage()
    reason: CompactFailure = "failed"


class Unstorable(_Input, frozen=True):
    """What came of the turn can never be stored."""

    turn: int
    error_id: str


class StartTool(_Input, frozen=True):
    turn: int
    step: int
    call_id: str


class FinishTool(_Input, frozen=True):
    """``events`` are what the tool wants to have happened, in the same commit."""

    turn: int
    step: int
    call_id: str
    outcome: ToolOutcome
    text: str
    artifact: str = ""
    events: tuple[Event, ...] = ()


class Wake(_Input, frozen=True):
    """The time that the turn waited for has come."""

    turn: int


class Expire(_Input, frozen=True):
    """The clock asks whether the session is idle, or its day is over."""


class Remind(_Input, frozen=True):
    reminder_id: str


Told = Attempt | Read | Reply | OverBudget | Fail | Unstorable | StartTool | FinishTool
"""What someone who works on a turn has to say of it."""
Shrunk = Compact | Summarize | NotSummarized
"""What someone who sums up has to say."""
Input = Receive | Refuse | Told | Shrunk | Wake | Expire | Remind
