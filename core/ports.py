"""What the core asks of the outside world; promises only, no behaviour.

All times are UTC. Every method raises what it names and nothing else.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import date, datetime
from typing import Any, Literal, Protocol

import msgspec

from core.domain.events import Event, Recorded, Role
from core.domain.keys import Address
from core.domain.ledger import Ledger
from core.domain.messages import (
    Attachment,
    EffectClass,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OutboxMessage,
    Part,
    RequestSize,
    ToolSpec,
    Usage,
)
from core.domain.outputs import AccessGrant, InboxId, Outcome, Timer
from core.domain.spending import Mark, Meter, Spent
from core.domain.state import SessionState

Platforms = frozenset[str] | None
"""Only what belongs to these platforms, so that a process sees what it can serve; None for all."""
PreviewState = Literal["opened", "sent", "held", "lost"]


class Lease(msgspec.Struct, frozen=True):
    """The right of ``owner`` (one process) to run a session until a point in time."""

    owner: str
    until: datetime


class Artifact(msgspec.Struct, frozen=True):
    """The whole of a result whose log entry was cut."""

    id: str
    text: str


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """The unit of work, as a value: all of it is stored, or nothing.

    ``log`` starts at ``expected_seq + 1`` without gaps; it may be empty, to take a lease or to
    store a snapshot. ``stream`` is the number of the log that it follows: 0 for a key that has
    none, None for whichever is there. ``settled`` gives inbox rows their outcome, the row of
    ``inbox`` included; a row is pending until then. ``owed`` is how many messages of its user the
    session still has to answer after ``log``. With a ``lease`` the session is taken, or kept, for
    its owner; with None the lease stays as it is, and it is let go when ``open_turn`` is False.
    ``snapshot`` is the state after ``log``, to be cached. What was ``spent`` is added to what was
    before; a mark that is there already stays.
    """

    key: str
    expected_seq: int
    at: datetime
    log: tuple[Recorded, ...]
    stream: int | None = None
    session_id: str = ""
    open_turn: bool = False
    owed: int = 0
    inbox: InboxId | None = None
    settled: tuple[tuple[InboxId, Outcome], ...] = ()
    outbox: tuple[OutboxMessage, ...] = ()
    timers: tuple[Timer, ...] = ()
    cleared: tuple[str, ...] = ()
    access: tuple[AccessGrant, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    lease: Lease | None = None
    snapshot: SessionState | None = None
    spent: tuple[Spent, ...] = ()
    marks: tuple[Mark, ...] = ()


class Stored(msgspec.Struct, frozen=True):
    """What is known of a key: the newest readable snapshot, if any, and the log after it.

    ``stream`` is the log's number: no other has it, before or after, under this key or another; 0
    for an unknown key.
    """

    snapshot: SessionState | None
    log: tuple[Recorded, ...]
    stream: int = 0


class StreamInfo(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    seq: int
    session_id: str
    open_turn: bool
    updated_at: datetime


RawRow = Mapping[str, Any]
"""A row as the database holds it, believed in nothing; bytes that are no UTF-8 text stand in it as
Python's «surrogateescape» has them."""


class RawHead(msgspec.Struct, frozen=True):
    """A key's own row and its snapshot's. ``tail`` is the newest event that is there, whatever the
    row says; ``number`` is the log's."""

    stream: RawRow
    snapshot: RawRow | None
    tail: int
    number: int


class RawLogs(Protocol):
    """What is stored of a key, readable or not, so that it can be copied out. Raises
    StorageError."""

    async def raw_head(self, key: str) -> RawHead | None:
        """None for an unknown key."""
        ...

    async def raw_events(self, key: str, after: int | None, limit: int) -> tuple[RawRow, ...]:
        """In order of ``seq``, those after that one, or from the very first."""
        ...


class SessionStore(RawLogs, Protocol):
    """The logs of all keys, with all that is stored in the same transaction."""

    async def load(self, key: str) -> Stored:
        """An unknown key has no snapshot and an empty log. A snapshot that cannot be read, or that
        a newer version wrote, is passed over: the log is then whole, from 1.

        Raises BrokenDataError when the log cannot be read or has a gap, StorageError.
        """
        ...

    async def events(
        self, key: str, first: int = 1, last: int | None = None
    ) -> tuple[Recorded, ...]:
        """The log from ``first`` to ``last``, both included, in order. Raises as ``load``."""
        ...

    async def bodies(self, key: str, seqs: tuple[int, ...]) -> tuple[Recorded, ...]:
        """Just these events (up to a few hundred), in the order of ``seq``. Raises as ``load``."""
        ...

    async def commit(self, commit: Commit) -> int:
        """Returns the log's number when everything is on disk. Nothing is stored when it raises:

        DuplicateError if the inbox row is there already; ConflictError if the log is not at
        ``expected_seq``, or is another than ``stream``, or an owner is granted while another one
        exists; LeaseLostError if a ``lease`` is asked for while another owner's is not over at
        ``commit.at``; UnstorableError if the database never takes what is in it. StorageError when
        the database failed: then it is not known whether the commit is there; load and look.
        """
        ...

    async def renew(self, keys: tuple[str, ...], lease: Lease) -> Mapping[str, int]:
        """Moves the end of the leases that ``lease.owner`` still holds; returns their keys, each
        with the number at which its log is."""
        ...

    async def abandoned(
        self, now: datetime, limit: int = 100, platforms: Platforms = None
    ) -> tuple[str, ...]:
        """Keys with an open turn whose lease is over, or that never had one; longest over first."""
        ...

    async def streams(self, prefix: str = "", limit: int = 1000) -> tuple[StreamInfo, ...]:
        """Newest first."""
        ...

    async def set_aside(
        self, key: str, stream: int, at: datetime, first: Commit | None = None
    ) -> str:
        """Moves the whole of this log of the key and its snapshot, unread, to its ``aside_key``,
        which it returns; nothing of it is deleted, the timers that it asked for are cleared, and
        the old key is unknown again; what it had taken and not answered has failed. ``first``
        begins the old key's next log, in one with it. Raises ConflictError when another log is
        there by now, or none; StorageError, and as ``commit``. Then nothing moved.
        """
        ...

    async def asides(self) -> tuple[str, ...]:
        """The keys under which logs that were set aside are kept, oldest first. It reads every key;
        raises StorageError."""
        ...

    async def artifact(self, artifact_id: str) -> str | None: ...


class Quarantine(Protocol):
    """Where broken logs are put for the operator, apart from the database."""

    async def keep(self, kept_as: str, why: str) -> str:
        """Copies out, unread, a log that was set aside; returns where the copy is. Raises
        StorageError."""
        ...

    async def missing(self, kept: tuple[str, ...]) -> tuple[str, ...]:
        """Those of which there is no copy."""
        ...


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """A row in the hands of who claimed it. ``position`` is its place in the outbox, which it keeps
    whatever becomes of its session; ``attempts`` counts this claim, from 1; ``doubts`` how often
    its outcome was unknown; ``created_at`` is when it was promised.

    ``preview_id`` is the platform's id of the preview message that the row ``edits``, or of the
    preview itself; or empty.
    """

    message: OutboxMessage
    position: int
    attempts: int
    created_at: datetime
    doubts: int = 0
    preview_id: str = ""


class Outbox(Protocol):
    """Messages promised. A row is pending, sending, sent, failed or unknown.

    The rows of one ``address.lane`` are sent in the order of their commits: a row can be claimed
    when it is pending, its ``not_before`` has passed, and no earlier row of its lane is pending,
    sending or unknown. Preview rows are never claimed, and hold up their lane only while sending.
    Who settles a row hands back what was claimed: except for ``sent``, which is a fact whoever
    knows it, it counts only as long as nobody has claimed the row since. All methods raise
    StorageError.
    """

    async def claim(
        self, now: datetime, lease: Lease, limit: int = 100, platforms: Platforms = None
    ) -> tuple[Claimed, ...]:
        """Marks rows sending under the lease, at most one a lane. No two claims share a row."""
        ...

    async def sent(self, row: Claimed, platform_id: str, at: datetime) -> None: ...

    async def retry(self, row: Claimed, not_before: datetime, error: str) -> None:
        """Back to pending: it is proved that nothing was sent, or a double is accepted."""
        ...

    async def give_up(self, row: Claimed, error: str, at: datetime) -> None:
        """Failed for good."""
        ...

    async def unknown(self, row: Claimed, error: str) -> None:
        """The request may have gone out. Of a preview that is out: nobody knows what it shows."""
        ...

    async def unsettled(
        self,
        now: datetime,
        limit: int = 100,
        platforms: Platforms = None,
        beside: Collection[int] = (),
    ) -> tuple[Claimed, ...]:
        """Rows that are unknown, after first making unknown those whose claim's lease is over;
        previews excepted. Oldest first, without those at the positions ``beside``."""
        ...

    async def open_preview(
        self, message: OutboxMessage, lease: Lease, at: datetime
    ) -> tuple[PreviewState, Claimed | None]:
        """Makes the preview's row, sending, where there is none: («opened», the row). Otherwise
        («sent», the row), or («lost», None) when it failed or its outcome is unknown. («held»,
        None) and no row while an older message of the lane is still to be sent."""
        ...

    async def backlog(self) -> dict[str, int]:
        """How many rows are in each state but «sent», previews excepted."""
        ...

    async def undelivered(self) -> dict[str, dict[str, int]]:
        """As ``backlog``, by platform."""
        ...


class Timers(Protocol):
    async def due(
        self, now: datetime, limit: int = 100, platforms: Platforms = None
    ) -> tuple[Timer, ...]:
        """Earliest first. They stay until a commit moves or clears them. Raises StorageError."""
        ...

    async def clear(self, timer: Timer) -> None:
        """For a timer that no commit answers; one that has been moved since stays. Raises
        StorageError."""
        ...


class Unowed(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is pending, though its session does not owe all of what is."""

    platform: str
    update_id: str
    key: str
    since: datetime


class Directory(Protocol):
    """Who may talk to the agent, and small facts of the whole service. Raises StorageError."""

    async def role(self, platform: str, user: str) -> Role | None: ...

    async def grants(self) -> tuple[AccessGrant, ...]: ...

    async def fact(self, name: str) -> str | None: ...

    async def facts(self, start: str) -> Mapping[str, str]:
        """Those whose names start so, by name."""
        ...

    async def set_fact(self, name: str, value: str) -> None:
        """Returns when it is on disk; so it also proves that the database can be written."""
        ...

    async def ledger(self) -> dict[str, Ledger]:
        """By platform; all numbers are of one moment. It costs what is open, not what is over."""
        ...

    async def unowed(self, limit: int = 20) -> tuple[Unowed, ...]:
        """Oldest first: messages that are pending in the inbox under keys that owe fewer. It reads
        the whole inbox."""
        ...


class Spending(Protocol):
    """What models cost, as the commits that spent it say; by days of UTC. Raises StorageError."""

    async def meter(self, day: date, platform: str, person: str) -> Meter:
        """The marks are the person's and the whole service's."""
        ...

    async def spent(self, platform: str, person: str, first: date, last: date) -> Usage:
        """From ``first`` to ``last``, both included."""
        ...

    async def spent_most(self, day: date, limit: int = 5) -> tuple[Spent, ...]:
        """Those who spent most; most dollars first, then most tokens."""
        ...

    async def spent_in_all(self) -> Mapping[str, Usage]:
        """By platform, since there is a database. It does not cost more with the days."""
        ...


class Files(Protocol):
    """Pictures as models are shown them, once however often they come. Raises StorageError."""

    async def keep_file(self, data: bytes) -> str:
        """Returns its SHA-256 in hex, when it is on disk: whatever names it is stored later."""
        ...

    async def file(self, sha: str) -> bytes | None:
        """None for one that is not there, or is not any more what it was."""
        ...


class Store(SessionStore, Outbox, Timers, Directory, Spending, Files, Protocol):
    """One database behind all of them, so that a commit can span them."""

    async def close(self) -> None: ...


OnText = Callable[[str], None]
"""Is given the whole text so far, again from the start when a call had to be repeated."""


class Model(Protocol):
    @property
    def name(self) -> str: ...

    async def measure(self, request: ModelRequest) -> RequestSize:
        """What it is by the model's own tokenizer, as far as that is known, and what the model
        takes; ``estimated`` is not its to say. It blocks nobody, and never raises."""
        ...

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply | ModelFailure:
        """A failure is a value, never an error. A reply is whole or there is none. Retries of its
        own included it ends within its time limit; cancelling it closes the connection."""
        ...


class Transcriber(Protocol):
    async def transcribe(self, data: bytes, attachment: Attachment) -> str:
        """What is said in it. Retries of its own included it ends within its time limit. Raises
        TransientError, PermanentError."""
        ...


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """``call_key`` names this call for ever; an idempotent tool hands it to its service.

    ``progress`` shows a line to the user while the tool runs, best effort. ``artifact`` reads the
    whole of a result of this conversation that was cut, None for any other; ``most`` is how many
    bytes of UTF-8 the model is shown of one.
    """

    key: str
    call_key: str
    address: Address
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]]
    progress: Callable[[str], None]
    artifact: Callable[[str], Awaitable[str | None]]
    most: int
    open_reminders: int = 0


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """``value`` is anything; it is made storable on its way in. ``events`` go into the same commit.

    ``failed`` marks a result that tells the model what was wrong with its call.
    """

    value: Any
    events: tuple[Event, ...] = ()
    failed: bool = False


class Tool(Protocol):
    """Never raises for bad arguments: it answers with ``failed``. ``timeout`` is in seconds."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def effect(self) -> EffectClass: ...

    @property
    def timeout(self) -> float: ...

    @property
    def demo_only(self) -> bool: ...

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput: ...


class Pace(msgspec.Struct, frozen=True):
    """``burst`` calls at once, then one every ``interval`` seconds."""

    interval: float
    burst: int


class Paces(msgspec.Struct, frozen=True):
    """The defaults suit every platform known: one a second with a person, 20 a minute in a group,
    30 a second in all."""

    chat: Pace = Pace(1.0, 3)
    group: Pace = Pace(3.5, 3)
    bot: Pace = Pace(1 / 30, 30)
    cosmetic_reserve: int = 1
    """Calls of a chat's burst that are left to real messages."""


class Channel(Protocol):
    """The sending side of one platform. Raises TransientError when it is proved that nothing was
    sent, PermanentError when the platform says never, UnknownOutcomeError for all the rest."""

    def render(self, text: str) -> tuple[Part, ...]:
        """Pure. Markdown to the parts that the platform accepts, in order; () for no visible text.
        Never raises."""
        ...

    def preview(self, text: str) -> Part | None:
        """Pure. A half-arrived answer as one part; None for no visible text. Never raises."""
        ...

    async def send(self, message: OutboxMessage) -> str:
        """Returns the platform's id of the new message."""
        ...

    async def edit(self, address: Address, platform_id: str, part: Part) -> None:
        """An edit that changes nothing is a success."""
        ...

    async def typing(self, address: Address) -> None: ...

    async def lookup(self, message: OutboxMessage, since: datetime) -> str | None:
        """Settles an unknown send: the platform's id where it can be found out that it arrived,
        None where it must be sent again, which is done soon or asked again. It was promised at
        ``since``, by our clock, and is nowhere before that."""
        ...

    async def fetch(self, attachment: Attachment, limit: int) -> bytes:
        """What came with a message; PermanentError when it is gone or larger than ``limit`` bytes.
        It may be asked for as often as one likes."""
        ...


class Clock(Protocol):
    def now(self) -> datetime: ...

    async def sleep(self, seconds: float) -> None: ...
