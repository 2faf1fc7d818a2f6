"""Where sessions are kept: the unit of work, the logs and their leases; promises only."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, Protocol

import msgspec

from core.domain.events import Recorded
from core.domain.messages import OutboxMessage
from core.domain.outputs import AccessGrant, InboxId, Outcome, Timer
from core.domain.spending import Mark, Spent
from core.domain.state import SessionState

Platforms = frozenset[str] | None
"""Only what belongs to these platforms, so that a process sees what it can serve; None for all."""


class Lease(msgspec.Struct, frozen=True):
    """The right of ``owner`` (one run of one process) to something until a point in time. One that
    is over by the time of its commit lets go.

    ``held``: it is the owner's already, and must not have been another's since, whether its time is
    over or not. So a process that slept past its lease can store nothing of what it did in it.
    """

    owner: str
    until: datetime
    held: bool = False


class Notification(msgspec.Struct, frozen=True):
    """What another process did: «turn», one is open that nobody runs; «session», that one went on,
    though its lease is not of who stored it; «lease», the one of that name was let go. «all»:
    whatever it was, it may have been missed."""

    kind: Literal["turn", "session", "lease", "all"]
    name: str = ""


Hear = Callable[[Notification], None]
"""It is called in the loop's thread, and must not block."""


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
    its owner, or let go; with None the lease stays as it is, and it is let go when ``open_turn`` is
    False. A session with an open turn that was let go is for any process to take.
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
        ``commit.at``, or one that is ``held`` is not the owner's any more; UnstorableError if the
        database never takes what is in it. StorageError when the database failed: then it is not
        known whether the commit is there; load and look.
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

    async def untaken(self, keys: tuple[str, ...]) -> frozenset[str]:
        """Of these, the keys with an open turn that was let go, or that nobody ever took: whoever
        takes it need not ask what a crash did to it."""
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
