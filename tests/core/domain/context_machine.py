"""What can happen to what a session shows the model; the part of the machine that is about that."""

from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from core.domain.policy import Strategy
from core.domain.state import Phase
from tests.core.domain.world import World

MOST_PINS = 3

summaries = st.sampled_from([" in short", " in short", "", " a summary as long as a book" * 200])


def while_(*phases: Phase) -> Any:
    return precondition(lambda self: self.world.state.phase in phases)


def wanted(self: "Contexts") -> bool:
    return self.world.witness.wanted_first > 0


class Contexts(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.number = 0

    def marked(self, sign: str, text: str = "") -> str:
        self.number += 1
        return f"<{sign}{self.number}>{text}"

    @while_(*set(Phase) - {Phase.CLOSED})
    @rule(keep=st.sampled_from(["", "the names"]))
    def someone_wants_a_summary(self, keep: str) -> None:
        begun = self.world.wants_compaction(keep)
        self.world.reached[f"/compact while {self.world.state.phase}"] += bool(begun)

    @precondition(wanted)
    @rule(summary=summaries, dies=st.booleans())
    def a_summary_is_made(self, summary: str, dies: bool) -> None:
        self.world.reached[f"summed up while {self.world.state.phase}"] += 1
        self.world.compacts()
        if dies:
            self.world.crashes()
            self.world.compacts()
        self.world.summarizes(self.marked("s", summary) if summary else summary)
        self.world.ask(self.world.asked[-1])

    @precondition(wanted)
    @rule()
    def no_summary_comes(self) -> None:
        before = self.world.state.session
        self.world.compacts()
        self.world.not_summarized()
        after = self.world.state.session
        assert before
        assert after
        assert after.entries[: len(before.entries)] == before.entries, "nothing has left"
        self.world.ask(self.world.asked[-1])

    @precondition(wanted)
    @rule()
    def whoever_sums_up_dies_each_time(self) -> None:
        for _ in range(self.world.policy.compact_attempts + 1):
            assert wanted(self)
            self.world.compacts()
            self.world.crashes()
        assert not wanted(self), "it is given up"
        self.world.reached["given up"] += 1

    @while_(Phase.IDLE)
    @rule()
    def a_compaction_is_undone(self) -> None:
        self.world.undoes_compaction()

    @while_(Phase.IDLE)
    @rule(before=st.integers(0, 3), since=st.integers(0, 2), pinned=st.booleans())
    def a_talk_is_summed_up_and_that_is_undone(self, before: int, since: int, pinned: bool) -> None:
        self.a_talk(before)
        if pinned:
            self.something_is_pinned()
        self.world.wants_compaction()
        if wanted(self):
            self.world.compacts()
            self.world.summarizes(self.marked("s"))
        self.a_talk(since)
        if self.world.state.phase is Phase.IDLE:
            self.world.undoes_compaction()

    @while_(Phase.IDLE)
    @rule(before=st.integers(2, 4))
    def a_message_waits_for_what_was_said_to_be_summed_up(self, before: int) -> None:
        self.a_talk(before)
        self.world.says(self.marked("m", " and all of that" * 5))
        if self.world.state.phase is Phase.THINKING:
            self.world.fails("too_long", asked=False)
        if wanted(self):
            self.a_summary_is_made("", dies=False)

    @while_(Phase.SUSPENDED, Phase.ACTING)
    @rule()
    def all_is_begun_anew(self) -> None:
        self.world.command("new")

    @while_(Phase.IDLE)
    @rule(again=st.booleans())
    def an_exchange_is_undone(self, again: bool) -> None:
        self.world.undoes_turn()
        if again:
            self.world.command("retry")
            self.world.reached["retry after undo"] += 1

    @precondition(lambda self: len(self.world.witness.pins) < MOST_PINS)
    @rule()
    def something_is_pinned(self) -> None:
        self.world.pins(self.marked("p"))
        self.world.reached[f"pinned while {self.world.state.phase}"] += 1

    @precondition(lambda self: self.world.witness.pins)
    @rule()
    def something_is_unpinned(self) -> None:
        self.world.unpins(min(self.world.witness.pins))

    @while_(*set(Phase) - {Phase.CLOSED, Phase.SUSPENDED})
    @rule(strategy=st.sampled_from(get_args(Strategy)))
    def a_strategy_is_chosen(self, strategy: Strategy) -> None:
        self.world.chooses(strategy)

    @while_(Phase.THINKING)
    @rule(times=st.integers(1, 5), asked=st.booleans())
    def a_request_is_too_long(self, times: int, asked: bool) -> None:
        for _ in range(times):
            if self.world.state.phase is Phase.THINKING:
                self.world.fails("too_long", asked=asked)
                self.world.reached["ladder"] += 1

    @while_(Phase.THINKING)
    @rule(answered=st.booleans())
    def a_request_is_refused(self, answered: bool) -> None:
        self.world.fails("refused")
        if self.world.state.phase is Phase.THINKING:
            self.world.reached["tried alone"] += 1
            if answered:
                self.world.replies(self.marked("a"))

    @while_(Phase.IDLE, Phase.CLOSED, Phase.SUSPENDED)
    @rule(times=st.integers(1, 6))
    def a_talk(self, times: int) -> None:
        for _ in range(times):
            self.world.says(self.marked("m", " of this and that" * 5))
            self.world.replies(self.marked("a", " and so on" * 5))
