"""One session driven by hand; every step of it is checked, nothing of it is stored or sent."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from core.commands.base import CommandContext
from core.domain import events as ev
from core.domain import inputs as ask
from core.domain.context import View, build_request, view_of
from core.domain.decide import decide
from core.domain.draft import Draft
from core.domain.effects import CallModel, next_effects
from core.domain.fold import fold
from core.domain.keys import Address
from core.domain.lifecycle import start_next
from core.domain.messages import (
    Attachment,
    EffectClass,
    FailureKind,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ReadFile,
    RequestSize,
    ToolCall,
    ToolOutcome,
    Usage,
)
from core.domain.outputs import Said, outputs
from core.domain.policy import Policy, Strategy
from core.domain.recovery import recover
from core.domain.room import is_worth_asking, start_compaction, undo_compaction, undo_turn
from core.domain.state import SessionState
from tests.core.domain import checks
from tests.core.domain.samples import HOME, KEY, START, commands, effect_of, inbound
from tests.core.domain.witness import Witness

Events = tuple[ev.Event, ...]
NOTHING = Usage()


class World:
    """Reads like a story: someone says something, the model replies, the process dies."""

    def __init__(self, policy: Policy | None = None, *, measures: bool = False) -> None:
        self.policy = policy or Policy()
        self.measures = measures
        """Whether each request is measured before the model is asked, as the agent does it."""
        self.state = SessionState(key=KEY)
        self.now = START
        self.log: list[ev.Recorded] = []
        self.said: list[Said] = []
        self.ledger: dict[str, str] = {}
        self.witness = Witness()
        self.snapshots: list[bytes] = []
        self.reached: Counter[str] = Counter()
        self.asked: list[ask.Input] = []
        self._numbers = 0
        self._bodies: dict[int, ev.Recorded] = {}
        self._last_request: checks.Shown | None = None

    @property
    def texts(self) -> list[str]:
        """What the chat was told, oldest first."""
        return [said.text for said in self.said]

    @property
    def turn(self) -> int:
        return self.state.turn.number if self.state.turn else 0

    @property
    def step(self) -> int:
        return self.state.turn.step if self.state.turn else 0

    @property
    def session_id(self) -> str:
        return self.state.session.session_id if self.state.session else ""

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def says(
        self,
        text: str = "hello",
        address: Address = HOME,
        name: str = "",
        attachments: tuple[Attachment, ...] = (),
        album: str = "",
    ) -> Events:
        over = self.witness.over(self.now, self.policy)
        message = inbound(text, self._number(), self.now, address, name, attachments, album)
        events = self.ask(ask.Receive(at=self.now, inbound=message))
        checks.admitted(events, over=over)
        return events

    def a_stranger_says(self, text: str = "let me in") -> Events:
        message = inbound(text, self._number(), self.now)
        return self.ask(ask.Refuse(at=self.now, inbound=message))

    def command(self, name: str, argument: str = "") -> Events:
        """As admission does it: the command, its answer, and then what waits."""
        self.reached[f"/{name} while {self.state.phase}"] += 1
        self.reached[f"/{name} with a queue"] += bool(self.state.queue)
        message = inbound(f"/{name} {argument}", self._number(), self.now)
        table = commands()
        context = CommandContext(
            inbound=message, argument=argument, role="owner", claims=False, commands=table
        )
        draft = Draft(self.state, self.now, self.policy)
        text = table[name].run(draft, context)
        draft.add(ev.CommandAnswered(inbound=message, command=name, text=text))
        start_next(draft)
        return self.commit(draft.events)

    def reads(self, *files: ReadFile) -> Events:
        """What came with the oldest message that is not read yet."""
        source = next(iter(self.witness.unread), 0)
        return self.ask(ask.Read(at=self.now, turn=self.turn, source=source, files=files))

    def replies(self, text: str = "", *calls: ToolCall, **more: Any) -> Events:
        if self.measures and not self.is_let_through():
            return ()
        given: dict[str, Any] = {"usage": Usage(10, 5, 0.25), "model": "m"} | more
        size = given.pop("size", RequestSize())
        if self.measures:
            size = self.size()
            given["usage"] = msgspec.structs.replace(given["usage"], prompt=size.counted)
        reply = ModelReply(text=text, calls=calls, **given)
        effects: tuple[EffectClass, ...] = tuple(effect_of(call.name) for call in calls)
        wish = ask.Reply(
            at=self.now, turn=self.turn, step=self.step, reply=reply, effects=effects, size=size
        )
        events = self.ask(wish)
        if self.measures:
            checks.bounded(self.state, self.policy, events)
        return events

    def is_let_through(self) -> bool:
        """The request is made smaller until it fits; False where it never does, or waits."""
        while any(isinstance(e, CallModel) for e in next_effects(self.state, self.policy)):
            if is_worth_asking(self.state, self.size(), self.policy, self.now):
                return True
            self.finds_too_long()
        return False

    def finds_too_long(self) -> Events:
        """Nobody was asked."""
        self.reached["found too long"] += 1
        return self.fails("too_long", asked=False)

    def fails(
        self,
        kind: FailureKind,
        retry_after: float | None = None,
        error_id: str = "e1",
        *,
        asked: bool = True,
    ) -> Events:
        failure = ModelFailure(kind=kind, detail="boom", retry_after=retry_after)
        return self.ask(
            ask.Fail(
                at=self.now,
                turn=self.turn,
                step=self.step,
                failure=failure,
                error_id=error_id,
                asked=asked,
                size=self.size(),
            )
        )

    def wants_compaction(self, keep: str = "") -> Events:
        return self._moves(lambda draft: start_compaction(draft, "asked", HOME, keep))

    def undoes_compaction(self) -> Events:
        return self._moves(undo_compaction)

    def undoes_turn(self) -> Events:
        return self._moves(undo_turn)

    def pins(self, text: str) -> Events:
        return self.commit((ev.Pinned(text=text),))

    def unpins(self, seq: int) -> Events:
        return self.commit((ev.Unpinned(pin=seq),))

    def chooses(self, strategy: Strategy) -> Events:
        return self.commit((ev.StrategyChosen(strategy=strategy),))

    def compacts(self) -> Events:
        """Someone takes the summary up."""
        return self.ask(ask.Compact(at=self.now))

    def summarizes(self, summary: str = "in short", usage: Usage = NOTHING) -> Events:
        first = self.witness.wanted_first
        return self.ask(ask.Summarize(at=self.now, first_turn=first, summary=summary, usage=usage))

    def not_summarized(self, usage: Usage = NOTHING) -> Events:
        first = self.witness.wanted_first
        return self.ask(
            ask.NotSummarized(at=self.now, first_turn=first, error_id="e2", usage=usage)
        )

    def cannot_be_stored(self) -> Events:
        return self.ask(ask.Unstorable(at=self.now, turn=self.turn, error_id="e1"))

    def attempts(self) -> Events:
        """Someone takes the turn up; at the limits it ends instead."""
        seen = self.witness
        spent = (
            seen.attempt >= self.policy.turn_max_attempts
            or seen.resumes >= self.policy.turn_max_resumes
        )
        events = self.ask(ask.Attempt(at=self.now, turn=self.turn))
        checks.attempted(events, spent=spent)
        self.reached["no progress" if spent else "resumed"] += 1
        return events

    def starts(self, call_id: str) -> Events:
        return self.ask(ask.StartTool(at=self.now, turn=self.turn, step=self.step, call_id=call_id))

    def finishes(
        self, call_id: str, outcome: ToolOutcome = "ok", text: str = "done", events: Events = ()
    ) -> Events:
        return self.ask(
            ask.FinishTool(
                at=self.now,
                turn=self.turn,
                step=self.step,
                call_id=call_id,
                outcome=outcome,
                text=text,
                events=events,
            )
        )

    def runs(self, call_id: str, text: str = "done") -> None:
        self.starts(call_id)
        self.finishes(call_id, text=text)

    def wakes(self) -> Events:
        return self.ask(ask.Wake(at=self.now, turn=self.turn))

    def expires(self) -> Events:
        return self.ask(ask.Expire(at=self.now))

    def reminds(self, reminder_id: str) -> Events:
        return self.ask(ask.Remind(at=self.now, reminder_id=reminder_id))

    def crashes(self) -> Events:
        """Dies, loads what was stored, records what it finds."""
        self._reload()
        return self._recover("crash")

    def shuts_down(self) -> Events:
        events = self._recover("shutdown")
        self._reload()
        return events

    def comes_back(self) -> None:
        self.crashes()
        self.attempts()

    def snaps(self) -> None:
        self.snapshots.append(msgspec.json.encode(self.state))

    def ask(self, wish: ask.Input) -> Events:
        """Nothing may follow from a stale input, something must from a fresh one."""
        events = decide(self.state, wish, self.policy)
        fresh = self.witness.fresh(wish, self.policy)
        assert bool(events) == fresh, f"{wish} while {self.state.phase}"
        self.asked.append(wish)
        self.reached[f"{'fresh' if fresh else 'stale'} {type(wish).__name__}"] += 1
        return self.commit(events)

    def commit(self, events: Events) -> Events:
        recorded = tuple(
            ev.Recorded(self.state.seq + number, self.now, event)
            for number, event in enumerate(events, 1)
        )
        before, self.state = self.state, fold(self.state, recorded)
        out = outputs(before, recorded, self.policy)
        for one in recorded:
            self.witness.see(one)
            self.reached[type(one.event).__name__] += 1
        self.log += recorded
        self._bodies |= {one.seq: one for one in recorded}
        checks.said_once(self.said, out.said)
        self.said += out.said
        self.ledger |= {inbox.update_id: outcome for inbox, outcome in out.settled}
        checks.survive_storage(self.state, recorded)
        self._check()
        return events

    @property
    def view(self) -> View:
        return view_of(self.state, self.policy)

    def request(self, prompt: str = "Be kind.") -> ModelRequest:
        return build_request(self.view, self._bodies, prompt, ())

    def size(self) -> RequestSize:
        """As a tokenizer might count it that agrees with our estimate."""
        counted = [checks.counted(message) for message in self.request().messages]
        window = self.policy.context_window
        return RequestSize(self.view.tokens, sum(counted), counted[0], window)

    def replays(self) -> None:
        """The log alone, and every snapshot with the rest of the log, lead to the same state."""
        assert fold(SessionState(key=KEY), self.log) == self.state
        for stored in self.snapshots:
            state = msgspec.json.decode(stored, type=SessionState)
            assert fold(state, self.log[state.seq :]) == self.state

    def _check(self) -> None:
        seen = self.witness
        pending = dict.fromkeys(seen.ledger, "pending")
        assert pending | self.ledger == seen.ledger, "a message is settled as its turn ended"
        checks.phase(self.state, next_effects(self.state, self.policy), seen)
        checks.queue(self.state, seen)
        checks.due(self.state, self.policy, seen)
        if self.state.session is None:
            return
        shown = checks.Shown(self.state, self.view, self.request())
        checks.legal(shown.request)
        checks.complete(shown, seen)
        if any(isinstance(e, CallModel) for e in next_effects(self.state, self.policy)):
            checks.stable(self._last_request, shown)
            self._last_request = shown

    def _reload(self) -> None:
        self.snapshots = self.snapshots[-5:]
        self.replays()
        if self.snapshots:
            state = msgspec.json.decode(self.snapshots[-1], type=SessionState)
            self.state = fold(state, self.log[state.seq :])
            self.reached["restored from a snapshot"] += 1

    def _recover(self, reason: ev.InterruptReason) -> Events:
        seen = self.witness
        running = {call for call, status in seen.open.items() if status == "running"}
        unsafe = {call for call in running if seen.effects[call] == "unsafe"}
        was = seen.status
        events = recover(self.state, self.now, reason, self.policy)
        checks.recovered(events, unsafe, at_work=was == "running")
        self.commit(events)
        assert "running" not in seen.open.values()
        assert recover(self.state, self.now, reason, self.policy) == ()
        for call in running:
            self.reached[f"killed in {seen.effects[call]}"] += 1
        self.reached[f"{reason} while {was or 'idle'}"] += 1
        return events

    def _moves(self, move: Callable[[Draft], bool]) -> Events:
        draft = Draft(self.state, self.now, self.policy)
        assert move(draft) == bool(draft.events)
        return self.commit(draft.events)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers
