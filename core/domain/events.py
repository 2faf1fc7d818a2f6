"""What can happen to a session; facts in the past tense, never changed once stored.

An event's fields are its contract for ever: new ones come with a default, none is renamed, and a
changed meaning is a new event or a new ``version`` with an upcaster in ``storage/codec.py``.
"""

from datetime import datetime
from typing import Any, ClassVar, Literal

import msgspec

from core.domain.keys import Address
from core.domain.messages import (
    EffectClass,
    FailureKind,
    Inbound,
    ReadFile,
    RequestSize,
    ToolCall,
    ToolOutcome,
    Usage,
)
from core.domain.policy import Strategy
from core.domain.spending import Limit

OpenReason = Literal["first", "idle", "daily", "new", "suspended", "reminder"]
CloseReason = Literal["idle", "daily", "new", "suspended"]
SuspendReason = Literal["stop", "no_progress"]
InterruptReason = Literal["shutdown", "crash"]
CompactReason = Literal["background", "too_long", "asked"]
CompactFailure = Literal["failed", "useless", "no_progress", "over_budget"]
NarrowReason = Literal["too_long", "refused"]
CancelReason = Literal["stop", "new", "interrupt", "steps"]
FailReason = FailureKind | Literal["no_progress", "unstorable", "over_budget"]
WaitReason = Literal["rate_limit"]
Role = Literal["owner", "allowed", "denied"]
FilePart = Literal["pictures", "texts"]


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    version: ClassVar[int] = 1


class SessionOpened(_Event, frozen=True):
    """A new run under the key. ``address`` is where a reset is told, None where nobody is told."""

    session_id: str
    reason: OpenReason
    parent: str = ""
    model: str = ""
    parameters: dict[str, Any] = {}
    address: Address | None = None


class SessionClosed(_Event, frozen=True):
    session_id: str
    reason: CloseReason


class SessionSuspended(_Event, frozen=True):
    """The next message opens a new session; this one stays readable and can be reopened."""

    session_id: str
    reason: SuspendReason


class SessionReopened(_Event, frozen=True):
    """The suspended session goes on, or the last closed one changes places with the current one."""

    session_id: str


class SessionSetAside(_Event, frozen=True):
    """The log before this one could not be read; it is kept under the reference."""

    address: Address
    reference: str


class MessageReceived(_Event, frozen=True):
    """A person's message is taken; it waits until a turn names it as a source."""

    inbound: Inbound


class StrangerRefused(_Event, frozen=True):
    """A message of someone who may not talk to the agent. ``told`` once in a while only."""

    inbound: Inbound
    told: bool


class CommandAnswered(_Event, frozen=True):
    """A slash command and what was said to it."""

    inbound: Inbound
    command: str
    text: str


class AccessChanged(_Event, frozen=True):
    """The owner (or the claim code) changed who may talk to the agent."""

    platform: str
    user: str
    role: Role


class ReminderSet(_Event, frozen=True):
    reminder_id: str
    due_at: datetime
    text: str
    address: Address


class ReminderDue(_Event, frozen=True):
    """The clock reached a reminder; it waits like a message. ``late`` in seconds past due."""

    reminder_id: str
    due_at: datetime
    text: str
    address: Address
    late: float = 0.0


class TurnStarted(_Event, frozen=True):
    """``sources`` are the sequence numbers of the messages and reminders that it answers."""

    turn: int
    sources: tuple[int, ...]
    retry: bool = False


class TurnSteered(_Event, frozen=True):
    """Messages that came during the turn go into it before its next model call. ``again``: a call
    that is under way knows nothing of them, and its reply will not count."""

    turn: int
    sources: tuple[int, ...]
    again: bool = False


class FilesRead(_Event, frozen=True):
    """What came with the message at ``source``, one for each attachment, in their order."""

    turn: int
    source: int
    files: tuple[ReadFile, ...]


class FilesLeftOut(_Event, frozen=True):
    """The provider did not take a request that held them; of what the turn is shown, none that came
    until now is shown any more."""

    turn: int
    what: FilePart


class TurnAttempted(_Event, frozen=True):
    """Counted before the work starts. ``attempt`` is since the last progress, from 1."""

    turn: int
    attempt: int


class TurnInterrupted(_Event, frozen=True):
    """The process went away ``since`` then, or is about to.

    Calls that were running and may run again are open again.
    """

    turn: int
    reason: InterruptReason
    since: datetime


class TurnWaiting(_Event, frozen=True):
    """The turn sleeps until a point in time that is stored, not slept for."""

    turn: int
    step: int
    reason: WaitReason
    until: datetime


class TurnWoken(_Event, frozen=True):
    turn: int


class ModelReplied(_Event, frozen=True):
    """A reply that arrived whole. ``effects`` has one class a call, in the order of the calls."""

    turn: int
    step: int
    text: str
    calls: tuple[ToolCall, ...] = ()
    effects: tuple[EffectClass, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    cut: bool = False
    size: RequestSize = RequestSize()


class ToolStarted(_Event, frozen=True):
    """Stored before the tool runs; only who stored it may run it."""

    turn: int
    step: int
    call_id: str


class ToolFinished(_Event, frozen=True):
    """``text`` is what the model sees; ``artifact`` names the whole result where it was cut."""

    turn: int
    step: int
    call_id: str
    outcome: ToolOutcome
    text: str
    artifact: str = ""


class TurnFinished(_Event, frozen=True):
    """The reply stored just before is the answer."""

    turn: int


class TurnFailed(_Event, frozen=True):
    """``sentence`` is for the user, ``error_id`` finds the detail in the log.

    What the provider refused does not become history: a turn that failed leaves the context.
    """

    turn: int
    reason: FailReason
    sentence: str
    error_id: str = ""


class TurnCancelled(_Event, frozen=True):
    """``where`` says what was done, started and not done, as the user is told."""

    turn: int
    reason: CancelReason
    where: str = ""


class Compacted(_Event, frozen=True):
    """Entries of turns before ``first_turn`` left the context; ``summary`` stands for them, or they
    just left. What stood for yet older ones stays until another summary does, or all of it is
    ``bare``. ``turns`` is how many left, the tokens are the context's before and after."""

    first_turn: int
    summary: str = ""
    bare: bool = False
    turns: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    usage: Usage = Usage()


class CompactionStarted(_Event, frozen=True):
    """Turns before ``first_turn`` shall be summed up. ``keep`` is what the user wants to be kept;
    it is told at the address what came of it."""

    first_turn: int
    reason: CompactReason
    address: Address
    keep: str = ""


class CompactionAttempted(_Event, frozen=True):
    """Counted before the model is asked. ``attempt`` is from 1."""

    attempt: int


class CompactionFailed(_Event, frozen=True):
    """Nothing left the context. ``usage`` is what the attempt cost all the same."""

    reason: CompactFailure
    error_id: str = ""
    usage: Usage = Usage()


class CompactionUndone(_Event, frozen=True):
    """What the last compaction took out of the context is back in it."""


class TurnUndone(_Event, frozen=True):
    """The turn's entries left the context; what its tools did stays done. A compaction that was
    under way may have read them, and is none any more."""

    turn: int


class ResultsShortened(_Event, frozen=True):
    """Of the results before ``before`` only the beginning and the end are shown: to this turn, and
    for good once it is answered."""

    turn: int
    before: int


class ContextNarrowed(_Event, frozen=True):
    """For this turn alone the turns before ``first_turn`` are not shown; with ``bare`` nothing is
    that stands for them either."""

    turn: int
    first_turn: int
    reason: NarrowReason
    bare: bool = False


class WindowLearned(_Event, frozen=True):
    """The provider took a request of so many tokens, by its own count as far as we know that, for
    too long; 0 where it was not asked. ``window`` is what the model takes by what is known of it, 0
    where that is not new."""

    turn: int
    tokens: int = 0
    window: int = 0


class StrategyChosen(_Event, frozen=True):
    """Where it sums nothing up, a compaction that no user asked for is none any more."""

    strategy: Strategy


class Pinned(_Event, frozen=True):
    """The text stays in the context, whatever else leaves it, in this session and the next."""

    text: str


class Unpinned(_Event, frozen=True):
    """``pin`` is the sequence number at which it was pinned."""

    pin: int


class CapNeared(_Event, frozen=True):
    """Little is left of a limit of the day (UTC); who is told at the address is told once."""

    limit: Limit
    spent: float
    cap: float
    address: Address


class CapsLifted(_Event, frozen=True):
    """For the rest of the day (UTC) the limits of a person do not count; without a person that of
    the whole service."""

    platform: str = ""
    user: str = ""


Event = (
    SessionOpened
    | SessionClosed
    | SessionSuspended
    | SessionReopened
    | SessionSetAside
    | MessageReceived
    | StrangerRefused
    | CommandAnswered
    | AccessChanged
    | ReminderSet
    | ReminderDue
    | TurnStarted
    | TurnSteered
    | FilesRead
    | FilesLeftOut
    | TurnAttempted
    | TurnInterrupted
    | TurnWaiting
    | TurnWoken
    | ModelReplied
    | ToolStarted
    | ToolFinished
    | TurnFinished
    | TurnFailed
    | TurnCancelled
    | Compacted
    | CompactionStarted
    | CompactionAttempted
    | CompactionFailed
    | CompactionUndone
    | TurnUndone
    | ResultsShortened
    | ContextNarrowed
    | WindowLearned
    | StrategyChosen
    | Pinned
    | Unpinned
    | CapNeared
    | CapsLifted
)


class Recorded(msgspec.Struct, frozen=True):
    """An event in its place: ``seq`` from 1 within the key's log, ``at`` in UTC."""

    seq: int
    at: datetime
    event: Event
