"""The loop: asks a state for its effects, does them, feeds the results back; it decides nothing."""

import asyncio
from datetime import datetime

import msgspec
import structlog

from core.domain import inputs as ask
from core.domain.context import build_request, view_of
from core.domain.effects import (
    AwaitSummary,
    AwaitTool,
    CallModel,
    ReadFiles,
    RunTool,
    Sleep,
    TryTurn,
    next_effects,
)
from core.domain.events import MessageReceived
from core.domain.messages import ModelFailure, ModelReply, ModelRequest, RequestSize
from core.domain.outputs import preview_id
from core.domain.room import is_worth_asking
from core.domain.spending import Limit
from core.domain.state import SessionState, Turn
from core.domain.values import clean
from core.errors import BrokenDataError, LeaseLostError, StillhereError, UnstorableError
from core.ports import Artifact
from core.runtime.gate import Gate
from core.runtime.outside import Outside
from core.runtime.preview import Preview
from core.runtime.retrying import insist
from core.runtime.sessions import Sessions
from core.runtime.watching import heard, outcome_of, span_of

Do = TryTurn | ReadFiles | CallModel | RunTool

log = structlog.get_logger(__name__)


class Work(msgspec.Struct, frozen=True):
    turn: int
    task: asyncio.Task[None]


class Agent:
    """At most one task a session works, and only under our own lease."""

    def __init__(self, sessions: Sessions, outside: Outside) -> None:
        self._sessions = sessions
        self._out = outside
        self._gate = Gate()
        self._works: dict[str, Work] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._stopping = False

    def reconcile(self, state: SessionState) -> None:
        """An open turn without a task gets one; a task whose turn is over is cancelled."""
        turn = state.turn
        work = self._works.get(state.key)
        active = turn is not None and turn.status != "waiting" and state.key in self._sessions.held
        if work is not None and (not active or turn is None or work.turn != turn.number):
            self._dismiss(state.key, work)
            work = None
        if active and turn is not None and work is None and not self._stopping:
            run = state.session.session_id if state.session else ""
            task = asyncio.create_task(self._work(state.key, run, turn.number))
            self._works[state.key] = Work(turn.number, task)

    def working(self) -> tuple[str, ...]:
        return tuple(self._works)

    async def drain(self, seconds: float) -> None:
        """Lets turns finish for so long, then breaks off the rest; no new ones begin."""
        self._stopping = True
        tasks = [work.task for work in self._works.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *self._leaving, return_exceptions=True)

    def _dismiss(self, key: str, work: Work) -> None:
        del self._works[key]
        if work.task is not asyncio.current_task() and not work.task.done():
            work.task.cancel()
            self._leaving.add(work.task)
            work.task.add_done_callback(self._leaving.discard)

    async def _work(self, key: str, session: str, turn: int) -> None:
        with structlog.contextvars.bound_contextvars(key=key, session=session, turn=turn):
            try:
                await self._loop_or_aside(key, turn)
            except LeaseLostError as error:
                log.info("turn is another's by now", error=str(error))
            except Exception:
                log.exception("turn broke off")
            finally:
                work = self._works.get(key)
                if work is not None and work.task is asyncio.current_task():
                    del self._works[key]

    async def _loop_or_aside(self, key: str, turn: int) -> None:
        try:
            await self._loop(key, turn)
        except BrokenDataError as error:
            await self._out.aside.put(key, error)

    async def _loop(self, key: str, number: int) -> None:
        while todo := await self._todo(key, number):
            first = todo[0]
            if isinstance(first, TryTurn):
                await self._pause(first)
            async with self._gate.step(alone=first.alone):
                if isinstance(first, TryTurn):
                    await self._tell(key, ask.Attempt(at=self._out.clock.now(), turn=first.turn))
                    todo = await self._todo(key, number)
                await self._do_all(await self._state(key), todo)

    async def _todo(self, key: str, number: int) -> list[Do]:
        """What is ours to do now; [] when the turn is over, another's, or waits."""
        state = await self._state(key)
        ours = state.turn is not None and state.turn.number == number
        if not ours or key not in self._sessions.held:
            return []
        effects = next_effects(state, self._sessions.policy)
        return [e for e in effects if not isinstance(e, AwaitTool | AwaitSummary | Sleep)]

    async def _state(self, key: str) -> SessionState:
        """A turn does not break off because the database is away just then."""
        return await insist(self._out.clock, lambda: self._sessions.state(key))

    async def _pause(self, effect: TryTurn) -> None:
        """Not longer than any pause lasts, also where the clock was set back meanwhile."""
        if effect.not_before is not None:
            clock = self._out.clock
            left = (effect.not_before - clock.now()).total_seconds()
            longest = max(self._sessions.policy.attempt_delays, default=0.0)
            await clock.sleep(min(max(0.0, left), longest))

    async def _do_all(self, state: SessionState, todo: list[Do]) -> None:
        if len(todo) == 1:
            await self._do(state, todo[0])
            return
        try:
            async with asyncio.TaskGroup() as group:
                for effect in todo:
                    group.create_task(self._do(state, effect))
        except ExceptionGroup as failed:
            broken = failed.subgroup(BrokenDataError) or failed
            raise broken.exceptions[0] from failed

    async def _do(self, state: SessionState, effect: Do) -> None:
        match effect:
            case ReadFiles():
                await self._read_files(state, effect)
            case CallModel():
                await self._call_model(state, effect)
            case RunTool():
                await self._run_tool(state, effect)
            case TryTurn():
                pass

    async def _read_files(self, state: SessionState, effect: ReadFiles) -> None:
        out = self._out
        seqs = (effect.source,)
        (source,) = await insist(out.clock, lambda: self._sessions.bodies(state.key, seqs))
        if not isinstance(source.event, MessageReceived):
            raise BrokenDataError(f"{state.key}@{effect.source}: no message")
        inbound = source.event.inbound
        preview = self._preview(state)
        try:
            files = await insist(
                out.clock, lambda: out.reader.read(inbound, unopened=effect.unopened)
            )
        finally:
            await preview.close()
        await preview.settled()
        at = out.clock.now()
        await self._tell(
            state.key, ask.Read(at=at, turn=effect.turn, source=effect.source, files=files)
        )

    async def _call_model(self, state: SessionState, effect: CallModel) -> None:
        with self._sessions.telemetry.span(span_of(state, "step", effect.step)) as span:
            span.outcome = await self._step(state, effect)

    async def _step(self, state: SessionState, effect: CallModel) -> str:
        """How it ended, in a word."""
        meter = await self._out.budget.meter(state)
        if limit := self._out.budget.forbids(meter):
            await self._tell(state.key, self._over_budget(effect, limit))
            return "over_budget"
        request, size = await self._measured(state)
        if not is_worth_asking(state, size, self._sessions.policy, self._out.clock.now()):
            await self._tell(state.key, self._too_long(effect, size))
            return "too_long"
        if state.session and not await self._still_ours(state.key, state.session.updated_at):
            return "lost"
        reply = await self._ask(state, request, effect.step)
        match reply:
            case ModelReply():
                self._out.model_signs.heard(reply)
                wish = msgspec.structs.replace(self._replied(effect, reply, size), meter=meter)
            case ModelFailure():
                hint = await self._hint(state, reply)
                self._out.model_signs.heard(reply, told=bool(hint))
                wish = self._failed(effect, reply, size, hint)
        await self._tell(state.key, wish)
        return outcome_of(reply)

    async def _measured(self, state: SessionState) -> tuple[ModelRequest, RequestSize]:
        policy = self._sessions.policy
        view = view_of(state, policy)
        found = await insist(self._out.clock, lambda: self._sessions.bodies(state.key, view.seqs))
        bodies = {recorded.seq: recorded for recorded in found}
        request = build_request(view, bodies, policy.system_prompt, self._out.toolbox.specs)
        measured = await self._out.model.measure(request)
        return request, msgspec.structs.replace(measured, estimated=view.tokens)

    async def _ask(
        self, state: SessionState, request: ModelRequest, step: int
    ) -> ModelReply | ModelFailure:
        if request.pictures:
            bare = request
            request = await insist(self._out.clock, lambda: self._out.reader.equipped(bare))
        preview = self._preview(state)
        model = self._out.model
        watched = span_of(state, "model", step, model.name)
        try:
            with self._sessions.telemetry.span(watched) as span:
                reply = await model.complete(request, preview.update)
                heard(span, reply)
        finally:
            await preview.close()
        await preview.settled()
        return reply

    def _replied(self, effect: CallModel, reply: ModelReply, size: RequestSize) -> ask.Reply:
        cleaned = _cleaned(reply)
        return ask.Reply(
            at=self._out.clock.now(),
            turn=effect.turn,
            step=effect.step,
            reply=cleaned,
            effects=self._out.toolbox.effects(cleaned.calls),
            size=size,
        )

    def _over_budget(self, effect: CallModel, limit: Limit) -> ask.OverBudget:
        log.warning("over budget", step=effect.step, limit=limit)
        at = self._out.clock.now()
        return ask.OverBudget(at=at, turn=effect.turn, step=effect.step, limit=limit)

    def _too_long(self, effect: CallModel, size: RequestSize) -> ask.Fail:
        """Found out by ourselves: nobody has to be asked, and nothing went wrong."""
        detail = f"{size.counted} tokens by our count, of {size.window} by the provider's"
        log.info("request too long", step=effect.step, detail=detail)
        failure = ModelFailure(kind="too_long", detail=detail)
        return self._fail(effect, failure, size, asked=False)

    async def _hint(self, state: SessionState, failure: ModelFailure) -> str:
        """The remedy, for whoever can mend it: never in a group, never to anybody else."""
        turn = _open_turn(state)
        if not failure.remedy or turn.address.chat_type != "dm":
            return ""
        who = turn.address.platform, state.spender
        runs_this = await insist(self._out.clock, lambda: self._out.access.runs_this(*who))
        return failure.remedy if runs_this else ""

    def _failed(
        self, effect: CallModel, failure: ModelFailure, size: RequestSize, hint: str
    ) -> ask.Fail:
        wish = msgspec.structs.replace(self._fail(effect, failure, size, asked=True), hint=hint)
        log.error(
            "model failed",
            step=effect.step,
            kind=failure.kind,
            detail=failure.detail,
            remedy=failure.remedy,
            error_id=wish.error_id,
        )
        return wish

    def _fail(
        self, effect: CallModel, failure: ModelFailure, size: RequestSize, *, asked: bool
    ) -> ask.Fail:
        return ask.Fail(
            at=self._out.clock.now(),
            turn=effect.turn,
            step=effect.step,
            failure=failure,
            error_id=self._out.toolbox.new_id(),
            size=size,
            asked=asked,
        )

    async def _run_tool(self, state: SessionState, effect: RunTool) -> None:
        start = ask.StartTool(
            at=self._out.clock.now(),
            turn=effect.turn,
            step=effect.step,
            call_id=effect.call.id,
        )
        if not await self._tell(state.key, start) or not await self._still_ours(
            state.key, start.at
        ):
            return
        preview = self._preview(state)
        toolbox = self._out.toolbox
        watched = span_of(state, "tool", effect.step, toolbox.known(effect.call.name))
        try:
            with self._sessions.telemetry.span(watched) as span:
                done = await toolbox.run(state, effect, preview.update)
                span.outcome = done.outcome
        finally:
            await preview.close()
        await preview.settled()
        finish = ask.FinishTool(
            at=self._out.clock.now(),
            turn=effect.turn,
            step=effect.step,
            call_id=effect.call.id,
            outcome=done.outcome,
            text=done.text,
            artifact=done.artifact.id if done.artifact else "",
            events=done.events,
        )
        await self._tell(state.key, finish, (done.artifact,) if done.artifact else ())

    async def _still_ours(self, key: str, since: datetime) -> bool:
        """A process that slept past its lease, which was ours ``since`` then, does nothing more for
        the turn: whoever took it up asks the model anew, and has told it that the outcome of a call
        which was started is unknown."""
        asleep = (self._out.clock.now() - since).total_seconds()
        if asleep >= self._out.holder.seconds / 2:
            await insist(self._out.clock, lambda: self._sessions.renew((key,)))
        return key in self._sessions.held

    async def _tell(self, key: str, wish: ask.Told, artifacts: tuple[Artifact, ...] = ()) -> bool:
        """What happened outside is kept until the database has it: nothing runs on unsaved. What it
        never takes ends the turn."""
        try:
            return await insist(self._out.clock, lambda: self._sessions.ask(key, wish, artifacts))
        except UnstorableError as error:
            await self._tell_unstorable(key, wish.turn, error)
            return False

    async def _tell_unstorable(self, key: str, turn: int, error: UnstorableError) -> None:
        error_id = self._out.toolbox.new_id()
        log.error("turn cannot be stored", error=str(error), error_id=error_id)
        wish = ask.Unstorable(at=self._out.clock.now(), turn=turn, error_id=error_id)
        await insist(self._out.clock, lambda: self._sessions.ask(key, wish))

    def _preview(self, state: SessionState) -> Preview:
        turn = _open_turn(state)
        stage = self._out.stage(turn.address)
        preview = Preview(preview_id(state.key, turn.number), state.key, turn.address, stage)
        preview.start()
        return preview


def _open_turn(state: SessionState) -> Turn:
    if state.turn is None:
        raise StillhereError(f"{state.key}: no turn is open")
    return state.turn


def _cleaned(reply: ModelReply) -> ModelReply:
    calls = tuple(
        msgspec.structs.replace(
            call, id=clean(call.id), name=clean(call.name), arguments=clean(call.arguments)
        )
        for call in reply.calls
    )
    return msgspec.structs.replace(reply, text=clean(reply.text), calls=calls)
