"""What a session is at one point of its log; holds no behaviour but what it can say of itself."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

import msgspec

from core.domain import events as ev
from core.domain.keys import Address, TurnId
from core.domain.messages import EffectClass, ToolCall, Usage
from core.domain.policy import Strategy

SCHEMA_VERSION = 1

SourceKind = Literal["user", "reminder"]
EntryKind = SourceKind | Literal["assistant", "tool", "interrupted", "ended", "summary", "files"]
CallStatus = Literal["pending", "running", "completed", "failed"]
TurnStatus = Literal["queued", "running", "waiting", "interrupted"]


class Phase(StrEnum):
    """Where the machine stands; the legal events of each are in ``LEGAL``."""

    CLOSED = "closed"
    IDLE = "idle"
    SUSPENDED = "suspended"
    QUEUED = "queued"
    THINKING = "thinking"
    ACTING = "acting"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An item of the transcript that the model sees; its body is the event at ``seq``."""

    seq: int
    kind: EntryKind
    turn: int
    tokens: int
    """Estimated."""
    pictures: int = 0
    """How many of its files are shown as pictures; the rest is what was read of them."""
    texts: int = 0
    short: bool = False
    """A result of which only the beginning and the end are shown."""
    acted: bool = False
    """A result of a call that may have changed something outside."""


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a turn answers: a message or a reminder that waits, or waited, in the queue."""

    seq: int
    kind: SourceKind
    address: Address
    tokens: int
    update_id: str = ""
    text: str = ""
    """Of a reminder: what it is about is said whatever becomes of the turn."""
    files: int = 0
    """How many came with it."""
    read: Entry | None = None
    """What they were found to be."""
    album: str = ""
    person: str = ""
    """Of a message: who sent it."""


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tool call of the current step. Times are UTC; a call that is pending and has a start ran
    before an interruption."""

    call: ToolCall
    effect: EffectClass
    status: CallStatus = "pending"
    started_at: datetime | None = None
    finished_at: datetime | None = None
    result_seq: int = 0


class Narrowed(msgspec.Struct, frozen=True, omit_defaults=True):
    """From which turn on the context is shown; ``bare``: without what stands for older ones."""

    first_turn: int
    reason: ev.NarrowReason
    bare: bool = False


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer in the making. ``step`` counts model calls from 1."""

    number: int
    sources: tuple[Source, ...]
    started_at: datetime
    status: TurnStatus = "queued"
    step: int = 1
    attempt: int = 0
    """Since the last progress."""
    resumes: int = 0
    calls: tuple[Call, ...] = ()
    """Of the newest reply; they stay until the next one."""
    done: tuple[str, ...] = ()
    """Names of the tools that finished, newest last."""
    interrupted_since: datetime | None = None
    paused_at: datetime | None = None
    """When the interruption was recorded; waits before an attempt count from here."""
    wait_until: datetime | None = None
    waits: int = 0
    narrowed: Narrowed | None = None
    short_before: int = 0
    """Results before this one are shown by their ends."""
    compacted: bool = False
    """There was a compaction during it, or one was begun for its sake; there is no second one."""

    @property
    def address(self) -> Address:
        return self.sources[-1].address

    @property
    def unread(self) -> tuple[Source, ...]:
        return tuple(s for s in self.sources if s.files and s.read is None)

    @property
    def open_calls(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if call.status in ("pending", "running"))


class Compaction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One that is wanted, or under way: turns before ``first_turn`` become a summary."""

    first_turn: int
    reason: ev.CompactReason
    address: Address
    keep: str = ""
    attempt: int = 0


class Pin(msgspec.Struct, frozen=True):
    """What the user wants to be kept in view, pinned at ``seq``."""

    seq: int
    text: str
    tokens: int
    behind: int = 0
    """The entry that was the last one then; 0 for none."""


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run under the key: metadata, context, usage and configuration."""

    session_id: str
    parent: str = ""
    opened_at: datetime
    updated_at: datetime
    last_user_at: datetime | None = None
    model: str = ""
    parameters: dict[str, Any] = {}
    suspended: bool = False
    entries: tuple[Entry, ...] = ()
    last_sources: tuple[Source, ...] = ()
    """What the last turn answered, for ``/retry``."""
    last_turn: int = 0
    refusals: int = 0
    """Answers in a row that the provider gave only without what was said before."""
    usage: Usage = Usage()
    custom: dict[str, Any] = {}
    strategy: Strategy | None = None
    """None: the operator's."""
    compaction: Compaction | None = None
    replaced: tuple[Entry, ...] = ()
    """What the last compaction took out, for ``/undo``."""
    left: int = 0
    """How many turns have left the context, a summary of them in it or not."""
    compacted_at: int = 0
    """The sequence number of the last compaction that can be undone; 0 for none."""
    answered_without: bool = False
    """The last answer had to do without older turns, for want of room."""
    settled: int = 0
    """Tokens of the context when a compaction was last done, undone or in vain; less where a turn
    has found it smaller since."""
    window: int = 0
    """Tokens that the model takes, as far as it was told; 0 when it was not."""
    refused_tokens: int = 0
    """The least that the provider refused as too long; 0 when it took all."""
    overhead: int = 0
    """Tokens of the system prompt and the tools, as the provider counts them."""
    scale: float = 1.0
    """The provider's tokens for one of our estimate."""
    bias: float = 1.0
    """The provider's tokens for one that we counted."""


class SessionState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that decisions need; its size follows the open work and the context, not the age."""

    key: str
    seq: int = 0
    schema_version: int = SCHEMA_VERSION
    session: Session | None = None
    previous: Session | None = None
    """The last closed session, which ``/resume`` reopens."""
    closed_reason: ev.CloseReason | None = None
    turn: Turn | None = None
    turns: int = 0
    queue: tuple[Source, ...] = ()
    reminders: tuple[ev.ReminderSet, ...] = ()
    refused_at: datetime | None = None
    pins: tuple[Pin, ...] = ()
    """Oldest first; they outlive their session."""
    wrote_last: str = ""
    """The person."""

    @property
    def spender(self) -> str:
        """The person for whom the model is asked now; empty where none is known."""
        people = [s.person for s in self.turn.sources if s.person] if self.turn else []
        return people[-1] if people else self.wrote_last

    @property
    def turn_id(self) -> TurnId | None:
        """Of the open turn."""
        if self.turn is None or self.session is None:
            return None
        return TurnId(self.session.session_id, self.turn.number)

    @property
    def phase(self) -> Phase:
        if self.turn is not None:
            return _turn_phase(self.turn)
        if self.session is None:
            return Phase.CLOSED
        return Phase.SUSPENDED if self.session.suspended else Phase.IDLE


def _turn_phase(turn: Turn) -> Phase:
    match turn.status:
        case "running":
            return Phase.ACTING if turn.open_calls else Phase.THINKING
        case "queued":
            return Phase.QUEUED
        case "waiting":
            return Phase.WAITING
        case "interrupted":
            return Phase.INTERRUPTED


_ALWAYS = (
    ev.SessionSetAside,
    ev.MessageReceived,
    ev.StrangerRefused,
    ev.CommandAnswered,
    ev.AccessChanged,
    ev.ReminderSet,
    ev.ReminderDue,
    ev.Pinned,
    ev.Unpinned,
    ev.CapNeared,
    ev.CapsLifted,
)
_IN_SESSION = (
    ev.StrategyChosen,
    ev.Compacted,
    ev.CompactionStarted,
    ev.CompactionAttempted,
    ev.CompactionFailed,
)
_ENDS = (ev.TurnFailed, ev.TurnCancelled)

LEGAL: dict[Phase, tuple[type[ev.Event], ...]] = {
    Phase.CLOSED: (*_ALWAYS, ev.SessionOpened, ev.SessionReopened),
    Phase.IDLE: (
        *_ALWAYS,
        ev.SessionClosed,
        ev.SessionSuspended,
        ev.SessionReopened,
        *_IN_SESSION,
        ev.CompactionUndone,
        ev.TurnUndone,
        ev.TurnStarted,
    ),
    Phase.SUSPENDED: (*_ALWAYS, ev.SessionClosed, ev.SessionReopened),
    Phase.QUEUED: (*_ALWAYS, *_IN_SESSION, *_ENDS, ev.TurnSteered, ev.TurnAttempted),
    Phase.THINKING: (
        *_ALWAYS,
        *_IN_SESSION,
        *_ENDS,
        ev.ResultsShortened,
        ev.ContextNarrowed,
        ev.WindowLearned,
        ev.ModelReplied,
        ev.TurnSteered,
        ev.FilesRead,
        ev.FilesLeftOut,
        ev.TurnInterrupted,
        ev.TurnWaiting,
        ev.TurnFinished,
    ),
    Phase.ACTING: (
        *_ALWAYS,
        *_IN_SESSION,
        *_ENDS,
        ev.ToolStarted,
        ev.ToolFinished,
        ev.TurnInterrupted,
    ),
    Phase.WAITING: (*_ALWAYS, *_IN_SESSION, *_ENDS, ev.TurnSteered, ev.TurnWoken),
    Phase.INTERRUPTED: (
        *_ALWAYS,
        *_IN_SESSION,
        *_ENDS,
        ev.TurnSteered,
        ev.ToolFinished,
        ev.TurnAttempted,
    ),
}
"""Which events a state allows; all others are a bug or a broken log."""
