"""What of a session the model has to be shown, by the log alone; the other half of the witness."""

from datetime import datetime
from typing import Literal

import msgspec

from core.domain import events as ev
from core.domain import inputs as ask
from core.domain.fold_context import ContextEvent

CallId = tuple[int, int, str]


class Line(msgspec.Struct, frozen=True):
    """One thing that the model has to be shown: ``ids`` are the calls of a reply."""

    turn: int
    kind: Literal["user", "assistant"]
    text: str
    ids: tuple[CallId, ...] = ()


class Undo(msgspec.Struct):
    """What the last compaction took out."""

    lines: list[Line]
    summary: str


class Run(msgspec.Struct):
    """One session, as someone who reads the log would know it."""

    active_at: datetime
    spoken: bool = False
    suspended: bool = False
    last_turn: int = 0
    lines: list[Line] = []
    summary: str = ""
    wanted: ev.CompactionStarted | None = None
    attempts: int = 0
    undo: Undo | None = None
    short_before: int = 0

    def wants(self, wanted: ev.CompactionStarted | None) -> None:
        self.wanted = wanted
        self.attempts = self.attempts if wanted else 0

    def turn_leaves(self, turn: int) -> None:
        """Nor does an undoing bring it back."""
        self.lines = [line for line in self.lines if line.turn != turn]
        if self.undo:
            self.undo.lines = [line for line in self.undo.lines if line.turn != turn]


class ContextWitness:
    """Raises AssertionError for a log that tells an impossible story."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.current = ""
        self.turn = 0
        self.retryable: dict[str, list[int]] = {}
        self.pins: dict[int, str] = {}
        self.seqs: dict[CallId, int] = {}
        """Of the results."""
        self.shown_from = 0
        self.bare = False
        self.short_before = 0
        self.begun_for_room = 0
        self.compactions = 0
        """That ended during the turn, and that no user asked for."""

    @property
    def run(self) -> Run:
        return self.runs[self.current]

    @property
    def wanted_first(self) -> int:
        wanted = self.run.wanted if self.current else None
        return wanted.first_turn if wanted else 0

    @property
    def lines(self) -> list[Line]:
        """What the model has to be shown now."""
        return [line for line in self.run.lines if line.turn >= self.shown_from]

    @property
    def summary(self) -> str:
        return "" if self.bare else self.run.summary

    def may_be_short(self, call: CallId) -> bool:
        return self.seqs[call] < max(self.short_before, self.run.short_before)

    def is_wanted(self, wish: ask.Shrunk) -> bool:
        wanted = self.run.wanted if self.current else None
        if wanted is None or isinstance(wish, ask.Compact):
            return wanted is not None
        return wish.first_turn == wanted.first_turn

    def begin_view(self) -> None:
        self.begun_for_room = self.compactions = 0

    def end_view(self, *, answered: bool) -> None:
        if answered:
            self.run.short_before = max(self.run.short_before, self.short_before)
        self.shown_from, self.bare, self.short_before = 0, False, 0

    def is_of_view(self, event: ev.Event) -> bool:
        match event:
            case ev.ResultsShortened(before=before):
                self.short_before = max(self.short_before, before)
            case ev.ContextNarrowed(first_turn=first, bare=bare):
                assert self.shown_from < first <= self.turn or (bare and not self.bare)
                self.shown_from, self.bare = first, bare
            case ev.WindowLearned(tokens=tokens, window=window):
                assert max(tokens, window) > 0
            case _:
                return False
        return True

    def of_context(self, event: ContextEvent | ev.Pinned | ev.Unpinned, seq: int) -> None:
        match event:
            case ev.Pinned(text=text):
                self.pins[seq] = text
            case ev.Unpinned(pin=pin):
                del self.pins[pin]
            case ev.CompactionStarted() | ev.CompactionAttempted() | ev.CompactionFailed():
                self._compacting(event)
            case ev.Compacted():
                self._compacted(event)
            case ev.CompactionUndone():
                assert self.run.undo, "there is nothing to undo"
                self.run.lines = [*self.run.undo.lines, *self.run.lines]
                self.run.summary = self.run.undo.summary
                self.run.undo = None
                self.run.wants(None)
            case ev.TurnUndone(turn=turn):
                self.run.turn_leaves(turn)
                self.run.wants(None)
                self.retryable[self.current] = []
            case ev.StrategyChosen(strategy="full" | "window"):
                wanted = self.run.wanted
                self.run.wants(wanted if wanted and wanted.reason == "asked" else None)
            case ev.StrategyChosen():
                pass

    def _compacting(
        self, event: ev.CompactionStarted | ev.CompactionAttempted | ev.CompactionFailed
    ) -> None:
        run = self.run
        assert not run.suspended, "the context of a conversation that was put aside is moved"
        if isinstance(event, ev.CompactionStarted):
            for_room = event.reason == "too_long"
            self.begun_for_room += for_room
            assert self.begun_for_room <= 1, "a second compaction in a turn"
            assert not (for_room and self.compactions), "a second compaction in a turn"
            assert run.wanted is None or run.wanted.first_turn == event.first_turn
            run.wants(event)
            return
        assert run.wanted, "a compaction that nobody wanted"
        if isinstance(event, ev.CompactionAttempted):
            run.attempts += 1
            assert event.attempt == run.attempts, "attempts are counted one by one"
        else:
            self._ends(run)

    def _compacted(self, event: ev.Compacted) -> None:
        run = self.run
        assert not (self.turn and event.first_turn > self.turn), "the open request leaves"
        gone = [line for line in run.lines if line.turn < event.first_turn]
        assert all(line.turn >= event.first_turn for line in run.lines[len(gone) :])
        run.undo = Undo(gone, run.summary)
        run.lines = run.lines[len(gone) :]
        run.summary = event.summary or ("" if event.bare else run.summary)
        self._ends(run)

    def _ends(self, run: Run) -> None:
        asked = run.wanted is not None and run.wanted.reason == "asked"
        self.compactions += bool(self.turn) and not asked
        assert self.compactions <= 1, "a second compaction in a turn"
        run.wants(None)
