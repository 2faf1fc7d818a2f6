"""Makes the summaries that sessions want, beside their turns; it decides nothing."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import structlog

from core.domain import inputs as ask
from core.domain.events import Compacted, Recorded
from core.domain.messages import ModelFailure, ModelReply, Usage
from core.domain.state import Compaction, Entry, Session, SessionState
from core.domain.summary import settled, summary_request, transcripts
from core.errors import BrokenDataError, ConflictError
from core.ports import Clock, Model
from core.runtime.aside import Aside
from core.runtime.budget import Budget
from core.runtime.retrying import insist
from core.runtime.sessions import Sessions

SECONDS = 180.0
"""Whoever waits for a summary waits no longer; what is not there by then has failed."""
SHARE_OF_WINDOW = 0.5
"""Of the summing model's window that a piece of the conversation may take."""
UNKNOWN_WINDOW = 8_000

log = structlog.get_logger(__name__)


class Made(msgspec.Struct, frozen=True):
    """A summary, empty when there is none for the reason given, and what it cost either way."""

    text: str = ""
    usage: Usage = Usage()
    why: str = ""


class Compactor:
    """At most one task a session works, and only under our own lease."""

    def __init__(  # noqa: PLR0913 (all that it stands between)
        self,
        sessions: Sessions,
        model: Model,
        clock: Clock,
        aside: Aside,
        new_id: Callable[[], str],
        budget: Budget,
    ) -> None:
        self._sessions = sessions
        self._model = model
        self._clock = clock
        self._aside = aside
        self._new_id = new_id
        self._budget = budget
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopping = False

    def reconcile(self, state: SessionState) -> None:
        """A compaction that is wanted gets a task; a task whose compaction is not is cancelled."""
        wanted = state.session is not None and state.session.compaction is not None
        task = self._tasks.get(state.key)
        if task is not None and not (wanted and state.key in self._sessions.held):
            del self._tasks[state.key]
            if task is not asyncio.current_task():
                task.cancel()
        elif wanted and task is None and state.key in self._sessions.held and not self._stopping:
            self._tasks[state.key] = asyncio.create_task(self._work(state.key))

    def working(self) -> tuple[str, ...]:
        return tuple(self._tasks)

    async def drain(self, seconds: float) -> None:
        """Lets them finish for so long; what is broken off is done anew by the next start."""
        self._stopping = True
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, key: str) -> None:
        with structlog.contextvars.bound_contextvars(key=key):
            try:
                await self._compact(key)
            except BrokenDataError as error:
                await self._aside.put(key, error)
            except ConflictError as error:
                log.info("compaction is another's by now", error=str(error))
            except Exception:
                log.exception("compaction broke off")
            finally:
                if self._tasks.get(key) is asyncio.current_task():
                    del self._tasks[key]

    async def _compact(self, key: str) -> None:
        await self._tell(key, ask.Compact(at=self._clock.now()))
        state = await insist(self._clock, lambda: self._sessions.state(key))
        session = state.session
        wanted = session.compaction if session else None
        if session is None or wanted is None:
            return
        if self._budget.forbids(await self._budget.meter(state)):
            await self._tell(key, self._over_budget(wanted))
            return
        made = await self._make(key, session, wanted)
        at = self._clock.now()
        if made.text:
            await self._tell(
                key,
                ask.Summarize(
                    at=at, first_turn=wanted.first_turn, summary=made.text, usage=made.usage
                ),
            )
            return
        error_id = self._new_id()
        log.error("no summary", why=made.why, error_id=error_id)
        await self._tell(
            key,
            ask.NotSummarized(
                at=at, first_turn=wanted.first_turn, error_id=error_id, usage=made.usage
            ),
        )

    def _over_budget(self, wanted: Compaction) -> ask.NotSummarized:
        return ask.NotSummarized(
            at=self._clock.now(),
            first_turn=wanted.first_turn,
            error_id="",
            reason="over_budget",
        )

    async def _make(self, key: str, session: Session, wanted: Compaction) -> Made:
        entries = tuple(e for e in session.entries if e.turn < wanted.first_turn)
        seqs = tuple(entry.seq for entry in entries)
        found = await insist(self._clock, lambda: self._sessions.bodies(key, seqs))
        bodies = {recorded.seq: recorded for recorded in found}
        made = Made(_summary_of(entries, bodies))
        size = await self._model.measure(summary_request(made.text, "", wanted.keep))
        room = int((size.window or UNKNOWN_WINDOW) * SHARE_OF_WINDOW / session.scale)
        try:
            async with asyncio.timeout(SECONDS):
                for transcript in transcripts(entries, bodies, room):
                    made = await self._add(made, transcript, wanted.keep)
                    if not made.text:
                        break
        except TimeoutError:
            return Made(usage=made.usage, why=f"no summary within {SECONDS:.0f} s")
        return made

    async def _add(self, made: Made, transcript: str, keep: str) -> Made:
        request = summary_request(made.text, transcript, keep)
        match await self._model.complete(request, lambda text: None):
            case ModelReply() as reply:
                usage = made.usage + reply.usage.credible
                return Made(settled(made.text, reply.text), usage, why="it says nothing")
            case ModelFailure(detail=detail):
                return Made(usage=made.usage, why=detail)

    async def _tell(self, key: str, wish: ask.Shrunk) -> bool:
        return await insist(self._clock, lambda: self._sessions.ask(key, wish))


def _summary_of(entries: tuple[Entry, ...], bodies: Mapping[int, Recorded]) -> str:
    events = [bodies[entry.seq].event for entry in entries if entry.seq in bodies]
    return next((event.summary for event in events if isinstance(event, Compacted)), "")
