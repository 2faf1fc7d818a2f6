"""Load, decide, commit: the only writer of sessions; it never does an effect itself."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from datetime import datetime
from weakref import WeakValueDictionary

import structlog
from msgspec.structs import replace

from core.domain import inputs as ask
from core.domain.decide import decide
from core.domain.events import Event, Recorded, SessionSetAside
from core.domain.fold import fold
from core.domain.keys import Address, aside_name, platform_of
from core.domain.ledger import owed
from core.domain.policy import Policy
from core.domain.recovery import faults
from core.domain.spending import Spent
from core.domain.state import SessionState
from core.errors import (
    BrokenDataError,
    ConflictError,
    IllegalEventError,
    LeaseLostError,
    UnstorableError,
)
from core.ports import UNWATCHED, Artifact, Channel, Clock, Commit, SessionStore, Telemetry
from core.runtime.behind import Behind, Decided
from core.runtime.capacity import Capacity
from core.runtime.commits import CommitBuilder, Extras, Standing, is_open
from core.runtime.holder import Holder
from core.runtime.watching import commit_span, end_of_turn, turns_by_phase
from core.runtime.whole import ended, whole

NO_EXTRAS = Extras()
CACHED_STATES = 2_000
MAX_CONFLICTS = 20

Decision = Callable[[SessionState, datetime], tuple[Event, ...]]
Listener = Callable[[SessionState], None]

log = structlog.get_logger(__name__)


class Sessions:
    """All sessions of one process."""

    def __init__(  # noqa: PLR0913 (all of it from outside)
        self,
        store: SessionStore,
        channels: Mapping[str, Channel],
        policy: Policy,
        clock: Clock,
        holder: Holder,
        telemetry: Telemetry = UNWATCHED,
    ) -> None:
        self.policy = policy
        self.telemetry = telemetry
        self.capacity = Capacity(holder.most)
        self.held: set[str] = set()
        """Keys whose lease is ours."""
        self._store = store
        self.platforms = frozenset(channels)
        """Those that are set up here; sessions of others wait for a process that has them."""
        self._builder = CommitBuilder(channels, policy, holder)
        self._behind = Behind(store, policy.durability, clock, holder)
        self._clock = clock
        self._holder = holder
        self._states: OrderedDict[str, SessionState] = OrderedDict()
        self._saved: dict[str, int] = {}
        """The sequence number of each newest snapshot that was written here."""
        self._streams: dict[str, int] = {}
        """The number of the log that each known state is of."""
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """It is called after each commit with the new state, and must not block; and after a look
        that found nothing to decide, since another process may have done it."""
        self._listeners.append(listener)

    @property
    def room(self) -> int:
        """How many more turns may be taken here."""
        return self.capacity.room(len(self.held))

    @property
    def unfinished(self) -> frozenset[str]:
        """Keys that a clean stop has to write something of."""
        return self._behind.keys | self.held

    def phases(self) -> Counter[str]:
        """How many open turns of this process are in which phase."""
        return turns_by_phase(self._states.values(), self.held, self._clock.now())

    async def state(self, key: str) -> SessionState:
        """The newest state known here. Raises StorageError, BrokenDataError, LeaseLostError."""
        async with self._lock(key):
            return await self._load(key)

    async def bodies(self, key: str, seqs: tuple[int, ...]) -> tuple[Recorded, ...]:
        """As ``SessionStore.bodies``, but for what is decided and not yet written, too."""
        wanted = set(seqs)
        here = tuple(recorded for recorded in self._behind.log(key) if recorded.seq in wanted)
        rest = wanted.difference(recorded.seq for recorded in here)
        return (*await self._store.bodies(key, tuple(sorted(rest))), *here)

    def unwritten(self, key: str) -> tuple[Spent, ...]:
        """What was spent by what is decided and not yet written."""
        return self._behind.spent(key)

    async def artifact(self, key: str, artifact_id: str) -> str | None:
        """As ``SessionStore.artifact``, but of what is decided and not yet written, too. It does
        not look whose it is."""
        here = self._behind.artifact(key, artifact_id)
        return await self._store.artifact(artifact_id) if here is None else here

    async def ask(self, key: str, wish: ask.Input, artifacts: tuple[Artifact, ...] = ()) -> bool:
        """True if the input had an effect, False if it was stale. Raises as ``change``."""

        def decision(state: SessionState, at: datetime) -> tuple[Event, ...]:
            return decide(state, wish, self.policy)

        return await self.change(key, decision, Extras(lease="take", artifacts=artifacts))

    async def change(self, key: str, decision: Decision, extras: Extras = NO_EXTRAS) -> bool:
        """Decides on the newest state and commits; looks again as long as others are faster.

        False where the decision was to do nothing. Raises StorageError, DuplicateError,
        LeaseLostError, BrokenDataError, and ConflictError after many tries. After UnstorableError
        the session is where the database has it: what was behind and is in it, too, is forgotten.
        """
        async with self._lock(key):
            for _ in range(MAX_CONFLICTS):
                may_be_behind = key in self._states and key not in self.held
                before = await self._load(key)
                at = self._clock.now()
                events = decision(before, at)
                if not events and may_be_behind:
                    del self._states[key]
                    continue
                if not events:
                    self._tell(before)
                    return False
                try:
                    await self._commit(before, events, at, extras)
                except LeaseLostError:
                    self._lose(key)
                    raise
                except ConflictError:
                    continue
                return True
        raise ConflictError(f"{key}: {MAX_CONFLICTS} conflicts in a row")

    async def set_aside(self, key: str, who: Address | None) -> str | None:
        """Where a log that cannot be read is kept; None when it can be, by now. The whole of it
        counts, not what is known here or in a snapshot. ``who`` is told so by what moves it, so
        that no end of the process lies between. What is moved is what was judged, or nothing.
        Raises StorageError, ConflictError."""
        async with self._lock(key):
            self._forget(key)
            head = await self._store.raw_head(key)
            if head is None:
                return None
            try:
                if self._checked(key, None, await self._store.events(key)) is not None:
                    return None
            except BrokenDataError as error:
                log.warning("log cannot be read", key=key, error=str(error))
            self._lose(key)
            at = self._clock.now()
            if who is None:
                return await whole(self._store.set_aside(key, head.number, at))
            notice = SessionSetAside(address=who, reference=aside_name(at))
            fresh = SessionState(key=key)
            after, commit = self._builder.build(fresh, (notice,), at, NO_EXTRAS, Standing(0))
            moved = await ended(self._store.set_aside(key, head.number, at, commit))
            kept_as = moved.result()
            self._tell(after)
            moved.go_on()
            return kept_as

    async def take(self, key: str) -> SessionState:
        """Gets the lease of a session with an open turn, and tells the listeners.

        Raises LeaseLostError, ConflictError, StorageError, BrokenDataError.
        """
        async with self._lock(key):
            state = await self._load(key)
            await self._commit(state, (), self._clock.now(), Extras(lease="take"))
        return state

    async def let_go(self, key: str) -> None:
        """Leaves a session to whoever comes next. Raises as ``take``."""
        async with self._lock(key):
            if key in self.held:
                state = await self._load(key)
                await self._commit(state, (), self._clock.now(), Extras(lease="let go"))

    async def renew(self, keys: tuple[str, ...]) -> None:
        """Keeps the leases of sessions that are being worked on. Where another process ended a
        turn, or took it, the listeners are told, so that nobody here works on for nothing. Raises
        StorageError."""
        kept = await self._renewed(keys)
        for key in keys:
            if not self._is_newest(key, kept):
                await self._look_again(key)

    async def _renewed(self, keys: tuple[str, ...]) -> Mapping[str, int]:
        return await self._store.renew(keys, self._holder.lease(self._clock.now()))

    def _is_newest(self, key: str, kept: Mapping[str, int]) -> bool:
        """Whether the lease is ours and nothing was stored beyond what is known here."""
        known = self._states.get(key)
        if key not in kept or known is None:
            return key in kept
        return kept[key] == known.seq - len(self._behind.log(key))

    async def _look_again(self, key: str) -> None:
        """Under the lock, since it may have been our own commit that came in between."""
        async with self._lock(key):
            kept = await self._renewed((key,))
            if self._is_newest(key, kept):
                return
            if key not in kept:
                self._let_slip(key)
            self._states.pop(key, None)
            try:
                self._tell(await self._load(key))
            except (ConflictError, BrokenDataError) as error:
                log.info("found changed by another", key=key, error=str(error))

    async def save_snapshots(self) -> None:
        """Before a clean stop, so that the next start reads little. Raises StorageError."""
        changed = [
            state
            for state in self._states.values()
            if self._saved.get(state.key, 0) < state.seq and state.key not in self._behind
        ]
        await asyncio.gather(*(self._save(state) for state in changed))

    async def _save(self, state: SessionState) -> None:
        with suppress(ConflictError):
            await self._store.commit(
                Commit(
                    key=state.key,
                    expected_seq=state.seq,
                    at=self._clock.now(),
                    log=(),
                    stream=self._streams.get(state.key, 0),
                    session_id=state.session.session_id if state.session else "",
                    open_turn=is_open(state),
                    owed=owed(state),
                    snapshot=state,
                )
            )

    def _lock(self, key: str) -> asyncio.Lock:
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    async def _load(self, key: str) -> SessionState:
        known = self._states.get(key)
        if known is not None:
            self._states.move_to_end(key)
            return known
        async with self._behind.at_rest(key):
            stored = await self._read(key)
            state = await self._behind.onto(stored, self._streams[key])
        if state is None:
            self._lose(key)
            raise LeaseLostError(f"{key}: others went on with what was not yet written here")
        self._remember(state)
        return state

    async def _read(self, key: str) -> SessionState:
        stored = await self._store.load(key)
        self._streams[key] = stored.stream
        self._saved[key] = stored.snapshot.seq if stored.snapshot else 0
        state = self._checked(key, stored.snapshot, stored.log)
        if state is None:
            log.warning("snapshot discarded", key=key)
            state = self._checked(key, None, await self._store.events(key))
        if state is None:
            raise BrokenDataError(f"{key}: its log does not fold to a sound state")
        return state

    @staticmethod
    def _checked(
        key: str, snapshot: SessionState | None, events: tuple[Recorded, ...]
    ) -> SessionState | None:
        try:
            state = fold(snapshot or SessionState(key=key), events)
        except IllegalEventError as error:
            log.warning("log does not fold", key=key, error=str(error))
            return None
        return None if faults(state) else state

    def _remember(self, state: SessionState) -> None:
        self._states[state.key] = state
        self._states.move_to_end(state.key)
        while len(self._states) > CACHED_STATES:
            key, _ = self._states.popitem(last=False)
            self._saved.pop(key, None)
            self._streams.pop(key, None)

    def _forget(self, key: str) -> None:
        self._states.pop(key, None)
        self._saved.pop(key, None)
        self._streams.pop(key, None)
        self.held.discard(key)

    async def _commit(
        self, before: SessionState, events: tuple[Event, ...], at: datetime, extras: Extras
    ) -> None:
        if before.key in self._behind and extras.lease == "if opened":
            extras = replace(extras, lease="take")
        stream = self._streams.get(before.key, 0)
        held = before.key in self.held
        room = not self.capacity.closed if held else self.room > 0
        standing = Standing(stream, held, room)
        after, commit = self._builder.build(before, events, at, extras, standing)
        decided = Decided(commit, after)
        if held and self._behind.may_wait(before, commit):
            self._behind.add(decided)
            self._committed(before, after, commit)
            return
        takes = commit.lease is not None and not held
        with self.capacity if takes else nullcontext():
            written = await ended(self._write(before, decided))
        written.result()
        self._committed(before, after, commit)
        written.go_on()

    def _committed(self, before: SessionState, after: SessionState, commit: Commit) -> None:
        self._remember(after)
        if commit.snapshot is not None:
            self._saved[before.key] = after.seq
        if not commit.open_turn or (commit.lease and commit.lease.until <= commit.at):
            self.held.discard(before.key)
        elif commit.lease:
            self.held.add(before.key)
        self._tell(after)
        over = end_of_turn(before, (one.event for one in commit.log), commit.at)
        if over is not None:
            self.telemetry.ended(over)

    def _tell(self, state: SessionState) -> None:
        for listener in self._listeners:
            listener(state)

    async def _write(self, before: SessionState, decided: Decided) -> None:
        try:
            with self.telemetry.span(commit_span(before, decided.after)) as span:
                self._streams[decided.after.key] = await self._behind.write(decided)
                span.outcome = "stored"
        except UnstorableError:
            self._states.pop(decided.after.key, None)
            self._behind.drop(decided.after.key)
            raise
        except BaseException:
            self._states.pop(decided.after.key, None)
            raise

    def _lose(self, key: str) -> None:
        """Another runs the session. Whoever works here on what was never stored has to stop: a
        later answer of theirs would fit by its turn and step, and yet follow from another past."""
        self._let_slip(key)
        never_stored = self._behind.drop(key)
        if never_stored is not None:
            self._states.pop(key, None)
            self._tell(never_stored)

    def _let_slip(self, key: str) -> None:
        """Another has its lease."""
        if key in self.held:
            self.held.discard(key)
            self.telemetry.count("lease_loss", platform_of(key))
