"""What the log says happened, counted apart from the fold; it never asks the code under test."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Literal

from core.domain import events as ev
from core.domain import inputs as ask
from core.domain.messages import EffectClass
from core.domain.policy import Policy
from tests.core.domain.context_witness import CallId, ContextWitness, Line, Run

Outcome = Literal["pending", "answered", "failed", "discarded"]
Status = Literal["", "running", "waiting", "interrupted"]
PROGRESS = ("ok", "error", "timeout")


class Witness(ContextWitness):
    """Raises AssertionError for a log that tells an impossible story."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[int, str] = {}
        self.updates: dict[int, str] = {}
        self.ledger: dict[str, Outcome] = {}
        self.previous = ""
        self.queue: list[int] = []
        self.begun: list[int] = []
        self.reminders: dict[str, datetime] = {}
        self.status: Status = ""
        self.step = 0
        self.attempt = 0
        self.resumes = 0
        self.waits = 0
        self.wait_until: datetime | None = None
        self.sources: list[int] = []
        self.effects: dict[CallId, EffectClass] = {}
        self.open: dict[CallId, Literal["pending", "running"]] = {}
        self.results: dict[CallId, str] = {}
        self.starts: Counter[CallId] = Counter()
        self.refused_at: datetime | None = None
        self.with_files: dict[int, int] = {}
        self.read: dict[int, int] = {}
        """How many of each message's files could be read."""
        self.albums: dict[int, str] = {}

    @property
    def unread(self) -> list[int]:
        return [seq for seq in self.sources if seq in self.with_files and seq not in self.read]

    def see(self, recorded: ev.Recorded) -> None:
        seq, at = recorded.seq, recorded.at
        match recorded.event:
            case ev.MessageReceived() | ev.ReminderDue() as event:
                self._arrived(event, seq, at)
            case ev.CommandAnswered(inbound=inbound):
                self.ledger[inbound.update_id] = "answered"
            case ev.StrangerRefused(inbound=inbound, told=told):
                self.ledger[inbound.update_id] = "discarded"
                self.refused_at = at if told else self.refused_at
            case ev.ReminderSet() as event:
                self.reminders[event.reminder_id] = event.due_at
            case ev.TurnStarted() as event:
                self._started(event, at)
            case ev.SessionOpened() | ev.SessionClosed() | ev.SessionSuspended() as event:
                self._session(event, at)
            case ev.SessionReopened() as event:
                self._reopened(event, at)
            case (
                ev.Compacted()
                | ev.CompactionStarted()
                | ev.CompactionAttempted()
                | ev.CompactionFailed()
                | ev.CompactionUndone()
                | ev.TurnUndone()
                | ev.StrategyChosen()
                | ev.Pinned()
                | ev.Unpinned()
            ) as event:
                self.of_context(event, seq)
            case ev.AccessChanged() | ev.CapNeared() | ev.CapsLifted() | ev.SessionSetAside():
                pass
            case event:
                assert event.turn == self.turn, "an event of another turn"
                self._in_turn(event, seq)

    def _arrived(self, event: ev.MessageReceived | ev.ReminderDue, seq: int, at: datetime) -> None:
        self.queue.append(seq)
        if isinstance(event, ev.ReminderDue):
            self.texts[seq] = event.text
            del self.reminders[event.reminder_id]
            return
        self.texts[seq] = event.inbound.text
        self.albums[seq] = event.inbound.album
        if event.inbound.attachments:
            self.with_files[seq] = len(event.inbound.attachments)
        self.updates[seq] = event.inbound.update_id
        self.ledger[event.inbound.update_id] = "pending"
        if self.current:
            self.run.active_at, self.run.spoken = at, True

    def _session(
        self, event: ev.SessionOpened | ev.SessionClosed | ev.SessionSuspended, at: datetime
    ) -> None:
        match event:
            case ev.SessionOpened():
                assert event.session_id not in self.runs, "a session id came twice"
                assert event.parent == self.previous
                self.runs[event.session_id] = Run(active_at=at)
                self.current = event.session_id
            case ev.SessionClosed():
                assert event.session_id == self.current
                assert not self.turn, "a session was closed under an open turn"
                assert event.reason not in ("idle", "daily") or not self.queue
                self.run.wants(None)
                self.previous, self.current = self.current, ""
            case ev.SessionSuspended():
                assert event.session_id == self.current
                self.run.suspended = True
                self.run.wants(None)

    def _reopened(self, event: ev.SessionReopened, at: datetime) -> None:
        if event.session_id != self.current:
            assert event.session_id == self.previous
            if self.current:
                self.run.wants(None)
            self.previous, self.current = self.current, self.previous
        self.run.suspended = False
        self.run.active_at, self.run.spoken = at, True

    def _started(self, event: ev.TurnStarted, at: datetime) -> None:
        assert not self.turn, "two turns at once"
        assert self.current, "a turn without a session"
        assert not self.run.suspended, "a turn in a suspended session"
        self.turn, self.status, self.step = event.turn, "", 1
        self.attempt = self.resumes = self.waits = 0
        self.sources = list(event.sources)
        self.begin_view()
        if event.retry:
            assert self.sources == self.retryable[self.current]
            self.run.turn_leaves(self.run.last_turn)
            self.run.active_at, self.run.spoken = at, True
            for seq in self.sources:
                self._settle(seq, "pending")
                if seq in self.read and self.read[seq] < self.with_files[seq]:
                    del self.read[seq]
        else:
            assert self.sources == self.queue, "the turn takes all that waits, in order"
            self._begin(self.sources)
        if not self.run.spoken and any(seq in self.updates for seq in self.sources):
            self.run.active_at, self.run.spoken = at, True
        self._show(self.sources)
        self.run.last_turn = event.turn

    def _begin(self, seqs: list[int]) -> None:
        assert [*self.begun[-1:], *seqs] == sorted({*self.begun[-1:], *seqs}), "out of order"
        self.begun += seqs
        self.queue = [seq for seq in self.queue if seq not in seqs]

    def _show(self, seqs: list[int]) -> None:
        self.run.lines += [Line(self.turn, "user", self.texts[seq]) for seq in seqs]
        self.retryable[self.current] = list(self.sources)

    def _in_turn(self, event: ev.Event, seq: int) -> None:  # noqa: C901 (exhaustive match)
        match event:
            case event if self.is_of_view(event):
                assert self.status == "running"
            case ev.TurnSteered(sources=sources, again=again):
                joined = {self.albums.get(seq, "") for seq in sources} - {""}
                assert self.status == "running" or joined
                assert not self.open, "steered in the middle of a step"
                self.step += again
                self.sources += sources
                self._begin(list(sources))
                self._show(list(sources))
            case ev.FilesRead(source=source, files=files):
                assert self.status == "running"
                assert source in self.unread, "files were read twice"
                self.read[source] = sum(file.kind != "refused" for file in files)
                self.attempt = 0
            case ev.FilesLeftOut():
                assert self.status == "running"
                assert self.read, "there were no files"
            case ev.TurnAttempted(attempt=attempt):
                assert attempt == self.attempt + 1, "attempts are counted one by one"
                self.resumes += self.status == "interrupted"
                self.attempt, self.status = attempt, "running"
            case ev.TurnInterrupted():
                self.status = "interrupted"
                self.open = dict.fromkeys(self.open, "pending")
            case ev.TurnWaiting(until=until):
                self.status, self.wait_until = "waiting", until
                self.waits += 1
            case ev.TurnWoken():
                self.status, self.wait_until = "running", None
            case ev.ModelReplied():
                self._replied(event)
            case ev.ToolStarted() | ev.ToolFinished():
                self._tool(event, seq)
            case _:
                self._ended(event)

    def _replied(self, event: ev.ModelReplied) -> None:
        assert event.step == self.step, "a step was answered twice"
        assert self.status == "running"
        assert not self.open
        ids = [(event.turn, event.step, call.id) for call in event.calls]
        assert len(set(ids)) == len(ids), "two calls of one step share an id"
        assert all(call.id for call in event.calls)
        self.effects |= dict(zip(ids, event.effects, strict=True))
        self.open = dict.fromkeys(ids, "pending")
        self.attempt = 0
        if event.text.strip() or ids:
            self.run.lines.append(Line(self.turn, "assistant", event.text, tuple(ids)))

    def _tool(self, event: ev.ToolStarted | ev.ToolFinished, seq: int) -> None:
        call = (event.turn, event.step, event.call_id)
        assert event.step == self.step
        if isinstance(event, ev.ToolStarted):
            assert self.open[call] == "pending", "a running call was started again"
            self.open[call] = "running"
            self.starts[call] += 1
            unsafe = self.effects[call] == "unsafe"
            assert not (unsafe and self.starts[call] > 1), "an unsafe call ran twice"
            return
        assert call not in self.results, "a call got two results"
        del self.open[call]
        self.results[call] = event.text
        self.seqs[call] = seq
        self.attempt = 0 if event.outcome in PROGRESS else self.attempt
        self.step += not self.open

    def _ended(self, event: ev.Event) -> None:
        assert not self.open, "the turn ended and a call has no result"
        ends: dict[type, Outcome] = {
            ev.TurnFinished: "answered",
            ev.TurnFailed: "failed",
            ev.TurnCancelled: "discarded",
        }
        for seq in self.sources:
            self._settle(seq, ends[type(event)])
        if isinstance(event, ev.TurnFailed) and event.reason in ("refused", "too_long"):
            self.run.turn_leaves(self.turn)
        self.end_view(answered=isinstance(event, ev.TurnFinished))
        self.turn, self.status, self.sources, self.wait_until = 0, "", [], None

    def _settle(self, seq: int, outcome: Outcome) -> None:
        if seq in self.updates:
            self.ledger[self.updates[seq]] = outcome

    def over(self, at: datetime, policy: Policy) -> bool:
        """Whether the current session is over by the clock."""
        if not self.current or self.turn or self.queue or self.run.suspended:
            return False
        since = self.run.active_at
        idle, daily = policy.idle_reset, policy.daily_reset_at
        if idle is not None and at - since >= timedelta(seconds=idle):
            return True
        if daily is None:
            return False
        night = timedelta(hours=daily.hour, minutes=daily.minute)
        return (at - night).date() > (since - night).date()

    def fresh(self, wish: ask.Input, policy: Policy) -> bool:  # noqa: C901 (exhaustive match)
        """Whether the input still means something."""
        match wish:
            case ask.Receive() | ask.Refuse():
                return True
            case ask.Expire():
                return self.over(wish.at, policy)
            case ask.Compact() | ask.Summarize() | ask.NotSummarized():
                return self.is_wanted(wish)
            case ask.Remind(reminder_id=name):
                return name in self.reminders and self.reminders[name] <= wish.at
            case ask.Attempt():
                here = bool(self.turn) and self.turn == wish.turn
                return here and self.status in ("", "interrupted")
            case ask.Read():
                here = self.turn == wish.turn and self.status == "running" and not self.open
                return here and wish.source in self.unread
            case ask.Unstorable():
                return self.turn != 0 and self.turn == wish.turn
            case ask.Wake():
                due = self.wait_until is not None and self.wait_until <= wish.at
                return self.turn == wish.turn and due
            case ask.Reply() | ask.OverBudget() | ask.Fail():
                here = (self.turn, self.step) == (wish.turn, wish.step)
                return here and self.status == "running" and not self.open
            case ask.StartTool() | ask.FinishTool():
                want = "pending" if isinstance(wish, ask.StartTool) else "running"
                found = self.open.get((wish.turn, wish.step, wish.call_id))
                return self.status == "running" and found == want
