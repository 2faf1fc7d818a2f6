"""Commits that are decided and not yet written; never writes one before an older one of its key.

What is behind of a key is its tail. Four rules hold it together:

1. Only who holds the session's lock (``core.runtime.sessions``) adds to a tail, takes one up again
   or drops it. A flight, which writes a tail in the background, takes the tail's own lock alone.
2. Every write carries the whole tail, in one transaction, on the sequence number it stands on: it
   is stored as it was decided, or not at all. ``Tail.lock`` keeps two writes of a key apart.
3. After a write that failed nothing is put behind any more until one has succeeded: the next commit
   is written, and what failed is seen by who commits.
4. Memory is believed over the database only by ``onto``, which compares the two.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import chain

import msgspec
import structlog
from msgspec.structs import replace

from core.domain.durability import may_lag
from core.domain.events import Recorded
from core.domain.fold import fold
from core.domain.policy import Durability
from core.domain.spending import Spent
from core.domain.state import SessionState
from core.errors import IllegalEventError, StillhereError, UnstorableError
from core.ports import Clock, Commit, SessionStore
from core.runtime.holder import Holder

MOST_BEHIND = 16
"""Commits of one key that a slow disk may be behind under ``async``; then the turn waits for it."""
_OWN = ("key", "expected_seq", "at", "log", "stream", "artifacts", "snapshot", "spent")
_OF_THE_NEWEST = ("session_id", "open_turn", "owed", "lease")
"""All that a commit that lags may carry; whatever else it holds is promised to someone."""

log = structlog.get_logger(__name__)


class Decided(msgspec.Struct, frozen=True):
    """A commit, and the state that it leads to."""

    commit: Commit
    after: SessionState


def together(decided: Sequence[Decided]) -> Commit:
    """All of them as one: the events of each, and the newest's word on everything else."""
    last = decided[-1]
    return replace(
        last.commit,
        expected_seq=decided[0].commit.expected_seq,
        log=tuple(chain.from_iterable(one.commit.log for one in decided)),
        artifacts=tuple(chain.from_iterable(one.commit.artifacts for one in decided)),
        spent=tuple(chain.from_iterable(one.commit.spent for one in decided)),
        snapshot=last.after if any(one.commit.snapshot for one in decided) else None,
    )


def bare(commit: Commit) -> bool:
    """It holds events of an open turn and nothing that anybody was promised."""
    return commit.open_turn and all(
        getattr(commit, field.name) == field.default
        for field in msgspec.structs.fields(Commit)
        if field.name not in (*_OWN, *_OF_THE_NEWEST)
    )


class Tail:
    """``decided`` is oldest first, and not empty while the tail is known to ``Behind``."""

    def __init__(self) -> None:
        self.decided: list[Decided] = []
        self.lock = asyncio.Lock()
        self.doubtful = False
        """The last write failed, and may be there all the same."""
        self.flight: asyncio.Task[None] | None = None


class Behind:
    """The tails of one process; under ``sync`` there are none."""

    def __init__(
        self, store: SessionStore, grade: Durability, clock: Clock, holder: Holder
    ) -> None:
        self._store = store
        self._grade = grade
        self._clock = clock
        self._holder = holder
        self._tails: dict[str, Tail] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._tails

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(self._tails)

    def log(self, key: str) -> tuple[Recorded, ...]:
        tail = self._tails.get(key)
        return together(tail.decided).log if tail else ()

    def spent(self, key: str) -> tuple[Spent, ...]:
        tail = self._tails.get(key)
        return together(tail.decided).spent if tail else ()

    def artifact(self, key: str, artifact_id: str) -> str | None:
        tail = self._tails.get(key)
        kept = together(tail.decided).artifacts if tail else ()
        return next((one.text for one in kept if one.id == artifact_id), None)

    def may_wait(self, before: SessionState, commit: Commit) -> bool:
        """To be asked only for a key whose lease is ours."""
        if self._grade == "sync" or not bare(commit) or not may_lag(before, commit.log):
            return False
        tail = self._tails.get(commit.key)
        if tail is None:
            return True
        near = self._grade == "exit" or len(tail.decided) < MOST_BEHIND
        return near and not tail.doubtful

    def add(self, decided: Decided) -> None:
        key = decided.commit.key
        tail = self._tails.setdefault(key, Tail())
        tail.decided.append(decided)
        if self._grade == "async" and (tail.flight is None or tail.flight.done()):
            tail.flight = asyncio.create_task(self._fly(key, tail))

    async def write(self, decided: Decided) -> int:
        """This one and all that is behind, after the flight that is under way; what can never be
        stored does not cost what was decided before it. As ``SessionStore.commit``."""
        tail = self._tails.get(decided.commit.key)
        if tail is None:
            return await self._store.commit(decided.commit)
        async with tail.lock:
            try:
                return await self._put(tail, together([*tail.decided, decided]))
            except UnstorableError:
                await self._put_alone(tail)
                raise

    async def _put_alone(self, tail: Tail) -> None:
        now = self._clock.now()
        lease = self._holder.lease(now, held=True)
        await self._put(tail, replace(together(tail.decided), at=now, lease=lease))

    async def _fly(self, key: str, tail: Tail) -> None:
        """Goes on while there is something to write; a commit that waits comes in between, and
        takes the tail along. A failure is left to the next commit (rule 3)."""
        try:
            while True:
                async with tail.lock:
                    if not tail.decided or tail.doubtful:
                        return
                    await self._put_alone(tail)
        except StillhereError as error:
            log.warning("not written in passing", key=key, error=str(error))
        except Exception:
            log.exception("not written in passing", key=key)

    async def _put(self, tail: Tail, commit: Commit) -> int:
        """Meanwhile more may gather; that stays."""
        carried = len(tail.decided)
        try:
            stream = await self._store.commit(commit)
        except BaseException:
            tail.doubtful = True
            raise
        tail.doubtful = False
        del tail.decided[:carried]
        if not tail.decided and self._tails.get(commit.key) is tail:
            del self._tails[commit.key]
        return stream

    def at_rest(self, key: str) -> AbstractAsyncContextManager[None]:
        """Inside no flight lands: what is read from the store fits what is behind."""
        tail = self._tails.get(key)
        return tail.lock if tail else nullcontext()

    async def onto(self, stored: SessionState, stream: int) -> SessionState | None:
        """The state with the tail on top, for what the store was found at, in that log; only at
        rest.

        The tail is dropped when it turns out to be stored. Where others wrote meanwhile its events
        follow theirs, if they still can; None where they cannot. Raises StorageError,
        BrokenDataError.
        """
        tail = self._tails.get(stored.key)
        if tail is None:
            return stored
        whole = together(tail.decided)
        if whole.stream not in (None, stream):
            return None
        base, end = whole.expected_seq, whole.log[-1].seq
        if stored.seq == base:
            return tail.decided[-1].after
        if await self._store.events(stored.key, base + 1, end) == whole.log:
            self.drop(stored.key)
            return stored
        return self._renumbered(tail, whole, stored)

    @staticmethod
    def _renumbered(tail: Tail, whole: Commit, stored: SessionState) -> SessionState | None:
        """Doubtful from here on: what the newest commit said of the session may be out of date, so
        that the next one has to say it."""
        moved = tuple(
            replace(recorded, seq=seq) for seq, recorded in enumerate(whole.log, stored.seq + 1)
        )
        try:
            after = fold(stored, moved)
        except IllegalEventError:
            return None
        tail.decided = [Decided(replace(whole, expected_seq=stored.seq, log=moved), after)]
        tail.doubtful = True
        return after

    def drop(self, key: str) -> SessionState | None:
        """The state that nobody will see stored; None where nothing was behind. A flight that still
        waits finds nothing to write."""
        tail = self._tails.pop(key, None)
        if tail is None:
            return None
        last = tail.decided[-1].after
        tail.decided.clear()
        return last
