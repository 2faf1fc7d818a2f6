"""Any sequence of what can happen to a session; it asserts nothing itself, the world does."""

import math
from datetime import time, timedelta
from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from msgspec.structs import replace

from core.domain import inputs as ask
from core.domain.messages import Attachment, FailureKind, FileResult, ReadFile, ToolCall, Usage
from core.domain.policy import BusyMode, Policy, Strategy
from core.domain.state import Phase
from tests.core.domain.context_machine import Contexts, while_
from tests.core.domain.samples import EFFECTS, reminder

HOUR = 3600.0
MOST_REMINDERS = 3
MADE_UP = ("unknown", "", "files.read", "look\ufffd", "l" * 100)
"""Names that a model has called for, and no tool has."""
TURNLESS = (
    *(ask.Receive, ask.Refuse, ask.Expire, ask.Remind),
    *(ask.Compact, ask.Summarize, ask.NotSummarized),
)
OF_A_STEP = (ask.Reply, ask.Fail, ask.StartTool, ask.FinishTool)

policies = st.builds(
    Policy,
    busy_mode=st.sampled_from(get_args(BusyMode)),
    idle_reset=st.sampled_from([None, 6 * HOUR, 24 * HOUR]),
    daily_reset_at=st.sampled_from([None, None, time(4)]),
    turn_max_steps=st.sampled_from([3, 50]),
    turn_max_attempts=st.sampled_from([2, 5]),
    turn_max_resumes=st.sampled_from([4, 20]),
    strategy=st.sampled_from([*get_args(Strategy), "compact", "auto"]),
    context_window=st.sampled_from([400, 400, 2_000, 24_000]),
    context_full=st.sampled_from([100, 8_000]),
    context_entries=st.sampled_from([8, 200]),
)
pauses = st.sampled_from([0.0, 1.0, 40.0, HOUR, 7 * HOUR, 25 * HOUR])
texts = st.sampled_from(["", "", " short", " long" * 60])
results = st.sampled_from(["", " found", " much" * 200, " far too much" * 200])
ids = st.sampled_from(["", "c1", "c1", "c2", "call_1_1_2"])
calls = st.lists(
    st.builds(ToolCall, ids, st.sampled_from([*EFFECTS, *MADE_UP]), st.just("{}")),
    min_size=1,
    max_size=4,
)


usages = st.sampled_from([Usage(10, 5, 0.25), Usage(-10, -5, -0.25), Usage(1, 1, math.nan)])
"""Less than nothing, and no number, are what vendors have reported."""


read_files = st.builds(
    ReadFile,
    kind=st.sampled_from(get_args(FileResult)),
    label=st.just("photo"),
    text=st.sampled_from(["", "words", "words " * 500]),
    sha=st.sampled_from(["a" * 64, "b" * 64]),
    mime=st.just("image/jpeg"),
)


def running(self: "Sessions") -> list[str]:
    return [call[2] for call, status in self.world.witness.open.items() if status == "running"]


class Sessions(Contexts):
    @initialize(policy=policies, measures=st.booleans())
    def begins(self, policy: Policy, measures: bool) -> None:
        self.world.policy = policy
        self.world.measures = measures

    @rule(text=texts, pause=pauses)
    def someone_writes(self, text: str, pause: float) -> None:
        self.world.passes(pause)
        self.world.says(self.marked("m", text))

    @precondition(lambda self: self.world.state.seq % 3 == 0)
    @rule(pause=pauses, many=st.integers(1, 2))
    def someone_sends_files(self, pause: float, many: int) -> None:
        self.world.passes(pause)
        files = tuple(Attachment(kind="photo", ref=f"r{n}") for n in range(many))
        self.world.says(self.marked("m"), attachments=files)

    @precondition(lambda self: self.world.state.seq % 3 == 1)
    @rule(
        captioned=st.booleans(),
        mixed=st.booleans(),
        later=st.sampled_from(["", "", "died", "read"]),
    )
    def someone_sends_an_album(self, captioned: bool, mixed: bool, later: str) -> None:
        album = self.marked("g")
        photo = (Attachment(kind="photo", ref="r"),)
        self.world.says(self.marked("m") if captioned else "", attachments=photo, album=album)
        self.world.reached[f"album while {self.world.state.phase}"] += 1
        if later == "died":
            self.world.crashes()
        if later and self.world.state.phase in (Phase.QUEUED, Phase.INTERRUPTED):
            self.world.attempts()
        if mixed:
            self.world.says(self.marked("m"))
        self.world.says("", attachments=photo, album=album)

    @while_(Phase.QUEUED)
    @rule()
    def the_album_is_complete(self) -> None:
        self.world.attempts()

    @precondition(lambda self: self.world.witness.unread)
    @while_(Phase.THINKING)
    @rule(files=st.lists(read_files, min_size=1, max_size=3), twice=st.booleans())
    def files_are_read(self, files: list[ReadFile], twice: bool) -> None:
        self.world.reads(*files)
        if twice:
            self.world.ask(self.world.asked[-1])

    @while_(Phase.CLOSED, Phase.IDLE, Phase.SUSPENDED)
    @rule(kind=st.sampled_from(["refused", "too_long", "never"]), pause=pauses)
    def a_picture_is_refused(self, kind: FailureKind, pause: float) -> None:
        self.world.passes(pause)
        self.world.says(self.marked("m"), attachments=(Attachment(kind="photo", ref="r"),))
        self.world.reads(ReadFile(kind="picture", label="photo", sha="c" * 64))
        assert self.world.request().pictures
        self.world.fails(kind)
        assert not self.world.request().pictures, "and is not sent again"
        self.world.replies(self.marked("a"))
        self.world.reached["a picture was refused"] += 1

    @while_(Phase.THINKING, Phase.ACTING, Phase.WAITING, Phase.INTERRUPTED)
    @rule()
    def someone_writes_meanwhile(self) -> None:
        self.world.reached[f"busy {self.world.policy.busy_mode}"] += 1
        self.world.says(self.marked("m"))

    @precondition(lambda self: self.world.state.seq % 7 == 0)
    @rule()
    def a_stranger_writes(self) -> None:
        self.world.a_stranger_says(self.marked("x"))

    @precondition(lambda self: self.world.state.phase is not Phase.CLOSED)
    @rule(name=st.sampled_from(["stop", "stop", "new", "resume", "retry", "status", "help"]))
    def a_command(self, name: str) -> None:
        self.world.command(name)

    @while_(Phase.THINKING, Phase.ACTING, Phase.WAITING, Phase.INTERRUPTED)
    @rule(name=st.sampled_from(["stop", "new"]), queued=st.booleans())
    def a_command_ends_the_turn(self, name: str, queued: bool) -> None:
        if queued:
            self.world.says(self.marked("m"))
        self.world.command(name)

    @while_(Phase.IDLE, Phase.SUSPENDED)
    @rule(name=st.sampled_from(["resume", "retry"]), pause=pauses)
    def someone_goes_back(self, name: str, pause: float) -> None:
        self.world.passes(pause)
        self.world.command(name)
        self.world.says(self.marked("m"))

    @while_(Phase.CLOSED, Phase.IDLE, Phase.SUSPENDED)
    @rule(text=texts, pause=pauses, found=results)
    def a_whole_exchange(self, text: str, pause: float, found: str) -> None:
        self.world.passes(pause)
        self.world.says(self.marked("m", text))
        self.world.replies("", ToolCall("w1", "book", "{}"))
        self.world.runs("w1", self.marked("t", found))
        self.world.replies(self.marked("a", text))

    @while_(Phase.IDLE)
    @rule(pause=pauses, later=pauses)
    def the_last_message_is_tried_again(self, pause: float, later: float) -> None:
        self.world.passes(pause)
        self.world.command("retry")
        if self.world.state.phase is Phase.THINKING:
            self.world.replies(self.marked("a"))
        self.world.passes(later)
        self.world.says(self.marked("m"))

    @while_(Phase.THINKING)
    @rule(cut=st.booleans(), text=texts, empty=st.booleans(), usage=usages)
    def the_model_answers(self, cut: bool, text: str, empty: bool, usage: Usage) -> None:
        self.world.reached["answered with a queue"] += bool(self.world.state.queue)
        self.world.replies("" if empty else self.marked("a", text), cut=cut, usage=usage)

    @while_(Phase.THINKING)
    @rule(calls=calls, wordless=st.booleans())
    def the_model_calls_tools(self, calls: list[ToolCall], wordless: bool) -> None:
        self.world.replies("" if wordless else self.marked("a"), *calls)

    @while_(Phase.THINKING)
    @rule(
        kind=st.sampled_from(get_args(FailureKind)),
        retry_after=st.sampled_from([None, 0.0, 20.0, 5 * HOUR]),
    )
    def the_model_fails(self, kind: FailureKind, retry_after: float | None) -> None:
        self.world.fails(kind, retry_after)

    @while_(Phase.THINKING, Phase.ACTING, Phase.INTERRUPTED)
    @rule()
    def what_comes_of_it_cannot_be_stored(self) -> None:
        self.world.cannot_be_stored()

    @while_(Phase.THINKING)
    @rule(pause=pauses, dies=st.booleans())
    def the_rate_limit_is_reached(self, pause: float, dies: bool) -> None:
        self.world.fails("try_again", 20.0)
        if dies:
            self.world.crashes()
        if self.world.state.phase is Phase.WAITING and pause >= 20.0:
            self.world.wakes()
            self.world.passes(pause)
            self.world.wakes()

    @precondition(lambda self: len(self.world.state.reminders) < MOST_REMINDERS)
    @while_(Phase.THINKING)
    @rule(later=st.sampled_from([10.0, 2 * HOUR, 30 * HOUR]))
    def a_reminder_is_set(self, later: float) -> None:
        text = self.marked("r")
        self.world.replies("", ToolCall("w1", "book", "{}"))
        if self.world.state.phase is Phase.ACTING:
            self.world.starts("w1")
            due = self.world.now + timedelta(seconds=later)
            self.world.finishes("w1", "ok", self.marked("t"), (reminder(text, due, text),))

    @while_(Phase.ACTING)
    @rule(data=st.data())
    def a_tool_starts(self, data: st.DataObject) -> None:
        waiting = [c for c, status in self.world.witness.open.items() if status == "pending"]
        if waiting:
            self.world.starts(data.draw(st.sampled_from(waiting))[2])

    @precondition(lambda self: bool(running(self)))
    @rule(data=st.data(), outcome=st.sampled_from(["ok", "ok", "error", "timeout"]), found=results)
    def a_tool_ends(self, data: st.DataObject, outcome: Any, found: str) -> None:
        name = data.draw(st.sampled_from(running(self)))
        self.world.finishes(name, outcome, self.marked("t", found))

    @precondition(lambda self: bool(running(self)))
    @rule()
    def all_tools_end(self) -> None:
        for name in running(self):
            self.world.finishes(name, "ok", self.marked("t"))

    @rule(
        back=st.integers(1, 30),
        step=st.integers(-1, 1),
        turn=st.integers(-1, 1),
        pause=st.sampled_from([0.0, 30.0]),
    )
    def something_comes_late(self, back: int, step: int, turn: int, pause: float) -> None:
        self.world.passes(pause)
        meant: list[Any] = [w for w in self.world.asked[-back:] if not isinstance(w, TURNLESS)]
        for wish in meant[:1]:
            moved = {"turn": wish.turn + turn, "at": self.world.now}
            late = {"step": wish.step + step} if isinstance(wish, OF_A_STEP) else {}
            self.world.ask(replace(wish, **moved, **late))

    @while_(Phase.THINKING, Phase.ACTING)
    @rule(step=st.sampled_from([-1, 1]))
    def a_reply_to_another_step(self, step: int) -> None:
        late = [wish for wish in self.world.asked if isinstance(wish, ask.Reply)]
        if late:
            turn, number = self.world.turn, self.world.step + step
            self.world.ask(replace(late[-1], turn=turn, step=number, at=self.world.now))

    @precondition(lambda self: self.world.turn)
    @rule(pause=pauses)
    def the_process_dies(self, pause: float) -> None:
        self.world.passes(pause)
        self.world.crashes()

    @while_(Phase.THINKING)
    @rule(calls=calls, pause=pauses)
    def the_process_dies_in_a_tool(self, calls: list[ToolCall], pause: float) -> None:
        self.world.replies("", *calls)
        for call in tuple(self.world.witness.open)[:2]:
            self.world.starts(call[2])
        self.world.passes(pause)
        self.world.crashes()

    @while_(Phase.THINKING, Phase.ACTING)
    @rule(times=st.integers(1, 5))
    def the_process_dies_again_and_again(self, times: int) -> None:
        for _ in range(times):
            self.world.crashes()
            if self.world.state.phase is Phase.INTERRUPTED:
                self.world.attempts()

    @while_(Phase.THINKING)
    @rule(times=st.integers(2, 5))
    def a_long_task_lives_through_deploys(self, times: int) -> None:
        for number in range(times):
            if self.world.state.phase is Phase.THINKING:
                self.world.replies("", ToolCall(f"long{number}", "look", "{}"))
            if self.world.state.phase is Phase.ACTING:
                self.world.runs(f"long{number}", self.marked("t"))
                self.world.comes_back()

    @precondition(lambda self: self.world.turn)
    @rule()
    def the_process_stops(self) -> None:
        self.world.shuts_down()

    @while_(Phase.INTERRUPTED)
    @rule()
    def someone_takes_the_turn_up(self) -> None:
        self.world.attempts()

    @while_(Phase.WAITING)
    @rule(early=st.booleans())
    def the_wait_ends(self, early: bool) -> None:
        until = self.world.witness.wait_until
        if until is not None and not early:
            self.world.now = max(self.world.now, until)
        self.world.wakes()

    @precondition(lambda self: self.world.session_id)
    @rule(pause=pauses)
    def the_clock_asks(self, pause: float) -> None:
        self.world.passes(pause)
        self.world.expires()

    @precondition(lambda self: self.world.witness.reminders)
    @rule(pause=st.sampled_from([0.0, HOUR, 30 * HOUR]), data=st.data())
    def a_reminder_rings(self, pause: float, data: st.DataObject) -> None:
        self.world.passes(pause)
        name = data.draw(st.sampled_from(sorted(self.world.witness.reminders)))
        self.world.reached[f"reminder while {self.world.state.phase}"] += 1
        self.world.reminds(name)

    @rule(mode=st.sampled_from(get_args(BusyMode)))
    def the_operator_changes_the_mode(self, mode: BusyMode) -> None:
        self.world.policy = replace(self.world.policy, busy_mode=mode)

    @rule()
    def a_snapshot(self) -> None:
        self.world.snaps()

    def teardown(self) -> None:
        self.world.replays()
