"""Makes the summaries that sessions want, beside their turns; it decides nothing."""

import asyncio
from collections import deque
from collections.abc import Mapping
from functools import partial

import msgspec
import structlog

from core.domain import inputs as ask
from core.domain.events import Compacted, CompactFailure, Recorded
from core.domain.messages import ModelFailure, ModelReply, Usage
from core.domain.state import Compaction, Entry, Session, SessionState
from core.domain.summary import (
    halves,
    is_overlong,
    longest_summary,
    merged,
    summary_request,
    transcripts,
)
from core.domain.values import clean
from core.domain.window import window_of
from core.errors import BrokenDataError, ConflictError, UnstorableError
from core.files.threads import Blocking, in_thread
from core.ports import Span
from core.runtime.outside import Outside
from core.runtime.preview import Preview
from core.runtime.retrying import insist
from core.runtime.sessions import Sessions
from core.runtime.watching import heard

SECONDS = 120.0
"""One request may take; what is not there by then has failed."""
LONGEST = 600.0
"""All of them may take: no turn waits longer for a summary."""
SHARE_OF_WINDOW = 0.5
"""Of the summing model's window that a piece of the conversation may take."""
UNKNOWN_WINDOW = 8_000

log = structlog.get_logger(__name__)


class Made(msgspec.Struct, frozen=True):
    """A summary, or ``why`` there is none; and what it cost either way."""

    text: str = ""
    usage: Usage = Usage()
    why: str = ""
    reason: CompactFailure = "failed"
    """Of there being none."""


class Work(msgspec.Struct):
    task: asyncio.Task[None]
    typing: Preview | None = None
    """Shown as soon as somebody waits for it."""


class Compactor:
    """At most one task a session works, and only under our own lease."""

    def __init__(
        self, sessions: Sessions, outside: Outside, blocking: Blocking = in_thread
    ) -> None:
        """To look for secrets in the talk of a month is ``blocking``."""
        self._blocking = blocking
        self._sessions = sessions
        self._out = outside
        self._clock = outside.clock
        self._works: dict[str, Work] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._stopping = False

    def reconcile(self, state: SessionState) -> None:
        """A compaction that is wanted gets a task; a task whose compaction is not is cancelled."""
        wanted = state.session.compaction if state.session else None
        active = wanted is not None and state.key in self._sessions.held
        work = self._works.get(state.key)
        if work is not None and not active:
            self._dismiss(state.key, work)
        if wanted is None or not active:
            return
        if work is None and not self._stopping:
            work = self._works[state.key] = Work(asyncio.create_task(self._work(state.key)))
        if work is not None and work.typing is None and wanted.reason != "background":
            stage = self._out.stage(wanted.address)
            work.typing = Preview("", state.key, wanted.address, stage)
            work.typing.start()

    def working(self) -> tuple[str, ...]:
        return tuple(self._works)

    async def drain(self, seconds: float) -> None:
        """Lets them finish for so long; what is broken off is done anew by the next start."""
        self._stopping = True
        tasks = [work.task for work in self._works.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *self._leaving, return_exceptions=True)

    def _dismiss(self, key: str, work: Work) -> None:
        del self._works[key]
        self._leaving.add(work.task)
        work.task.add_done_callback(self._leaving.discard)
        if work.task is not asyncio.current_task():
            work.task.cancel()

    async def _work(self, key: str) -> None:
        work = self._works[key]
        with structlog.contextvars.bound_contextvars(key=key):
            try:
                await self._compact(key)
            except BrokenDataError as error:
                await self._out.aside.put(key, error)
            except ConflictError as error:
                log.info("compaction is another's by now", error=str(error))
            except Exception:
                log.exception("compaction broke off")
            finally:
                if self._works.get(key) is work:
                    del self._works[key]
                if work.typing is not None:
                    await work.typing.close()

    async def _compact(self, key: str) -> None:
        await self._tell(key, ask.Compact(at=self._clock.now()))
        state = await insist(self._clock, lambda: self._sessions.state(key))
        session = state.session
        wanted = session.compaction if session else None
        if session is None or wanted is None:
            return
        if self._out.budget.forbids(await self._out.budget.meter(state)):
            made = Made(why="a limit is reached", reason="over_budget")
        else:
            made = await self._make(state, session, wanted)
        try:
            await self._tell(key, self._told(made, wanted))
        except UnstorableError as error:
            unstorable = Made(usage=made.usage, why=str(error))
            await self._tell(key, self._told(unstorable, wanted))

    def _told(self, made: Made, wanted: Compaction) -> ask.Shrunk:
        at = self._clock.now()
        if not made.why:
            return ask.Summarize(
                at=at, first_turn=wanted.first_turn, summary=made.text, usage=made.usage
            )
        error_id = ""
        if made.reason == "failed":
            error_id = self._out.toolbox.new_id()
            log.error("no summary", why=made.why, error_id=error_id)
        return ask.NotSummarized(
            at=at,
            first_turn=wanted.first_turn,
            error_id=error_id,
            usage=made.usage,
            reason=made.reason,
        )

    async def _make(self, state: SessionState, session: Session, wanted: Compaction) -> Made:
        """Piece by piece, each with what came of those before; a piece that proves to be too long
        is taken by halves."""
        entries = tuple(e for e in session.entries if e.turn < wanted.first_turn)
        seqs = tuple(entry.seq for entry in entries)
        found = await insist(self._clock, lambda: self._sessions.bodies(state.key, seqs))
        bodies = {recorded.seq: recorded for recorded in found}
        made = Made(_summary_of(entries, bodies))
        window = await self._window()
        shown = min(window, window_of(state, self._sessions.policy))
        most = int(longest_summary(shown) / session.scale)
        room = int(window * SHARE_OF_WINDOW / session.scale)
        try:
            async with asyncio.timeout(LONGEST):
                told = await self._blocking(partial(transcripts, entries, bodies, room), LONGEST)
                pieces = deque(told)
                if not pieces:
                    return Made(why="there is nothing to sum up")
                while pieces and not made.why:
                    piece = pieces.popleft()
                    added = await self._add(made, piece, wanted.keep, most)
                    pieces.extendleft(halves(piece)[::-1] if added is None else ())
                    made = added or made
        except TimeoutError:
            return Made(usage=made.usage, why="it did not come in time")
        return made

    async def _window(self) -> int:
        size = await self._out.summarizer.measure(summary_request("", "", "", 0))
        return size.window or UNKNOWN_WINDOW

    async def _add(self, made: Made, piece: str, keep: str, most: int) -> Made | None:
        """None where the piece is too long and can be halved. Raises TimeoutError."""
        model = self._out.summarizer
        request = summary_request(made.text, piece, keep, most)
        size = await model.measure(request)
        divisible = bool(halves(piece))
        if divisible and size.window and size.counted > size.window:
            return None
        watched = Span(kind="summary", name=model.name)
        with self._sessions.telemetry.span(watched) as span:
            async with asyncio.timeout(SECONDS):
                reply = await model.complete(request, lambda text: None)
            heard(span, reply)
        match reply:
            case ModelReply():
                return _added(made, piece, reply, most)
            case ModelFailure(kind="too_long") if divisible:
                return None
            case ModelFailure(detail=detail, remedy=remedy):
                why = f"{detail} {remedy}".strip()
                return Made(usage=made.usage, why=why or "it failed")

    async def _tell(self, key: str, wish: ask.Shrunk) -> bool:
        return await insist(self._clock, lambda: self._sessions.ask(key, wish))


def _added(made: Made, piece: str, reply: ModelReply, most: int) -> Made:
    usage = made.usage + reply.usage.credible
    if is_overlong(reply.text, made.text, piece, most):
        return Made(usage=usage, why="it is longer than what it sums up", reason="useless")
    text = merged(made.text, clean(reply.text), most)
    return Made(text, usage, "" if text else "it says nothing")


def _summary_of(entries: tuple[Entry, ...], bodies: Mapping[int, Recorded]) -> str:
    events = [bodies[entry.seq].event for entry in entries if entry.seq in bodies]
    return next((event.summary for event in events if isinstance(event, Compacted)), "")
