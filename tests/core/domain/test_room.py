"""How room is made in the model's window, rung by rung, and that there is an end to it."""

import pytest
from msgspec.structs import replace

from core.domain import events as ev
from core.domain import inputs as ask
from core.domain.messages import (
    AssistantMessage,
    Attachment,
    ModelFailure,
    ReadFile,
    RequestSize,
    ToolMessage,
    UserMessage,
)
from core.domain.policy import Policy, Strategy
from core.domain.state import Phase
from tests.core.domain.samples import HOME, calls
from tests.core.domain.world import World

SMALL = Policy(context_window=2_000, strategy="compact")
LONG = " and so on" * 40
"""About a hundred tokens: an exchange of two takes a tenth of the small window."""
SUMMARY = "## Goal\n- to talk"


def talks(world: World, times: int, more: str = LONG) -> None:
    for _ in range(times):
        number = world.state.turns + 1
        world.says(f"<m{number}>{more}")
        world.replies(f"<a{number}>{more}")


def users(world: World) -> str:
    return "\n".join(m.text for m in world.request().messages if isinstance(m, UserMessage))


def shown(world: World) -> list[int]:
    """The turns whose messages the model is shown."""
    words = users(world)
    return [n for n in range(1, world.state.turns + 1) if f"<m{n}>" in words]


def kinds(events: tuple[ev.Event, ...]) -> list[str]:
    return [type(event).__name__ for event in events]


def count(world: World, kind: type[ev.Event]) -> int:
    return sum(isinstance(one.event, kind) for one in world.log)


def crowded() -> World:
    """The window has filled, and a summary is wanted."""
    world = World(SMALL, measures=True)
    talks(world, 7)
    assert world.witness.wanted_first
    return world


def test_a_window_that_fills_is_emptied_behind_the_users_back_and_that_is_told() -> None:
    world = crowded()
    assert shown(world) == [1, 2, 3, 4, 5, 6, 7], "nothing leaves before the summary is there"

    world.compacts()
    world.summarizes(SUMMARY, ev.Usage(500, 50, 0.0123))

    assert shown(world) == [6, 7]
    assert users(world).startswith(f"[summary] {SUMMARY}\n\n<m6>")
    assert "I have summed up 5 older turns" in world.texts[-1]
    assert "$0.0123" in world.texts[-1]
    assert "/undo" in world.texts[-1]


def test_a_conversation_goes_on_while_it_is_summed_up() -> None:
    world = crowded()
    world.compacts()
    world.says("<m8> meanwhile")
    world.summarizes(SUMMARY)

    assert world.state.phase is Phase.THINKING
    assert shown(world) == [6, 7, 8]
    world.replies("<a8>")
    assert world.texts[-1] == "<a8>"


def test_the_next_summary_stands_for_the_last_one_too() -> None:
    world = crowded()
    world.compacts()
    world.summarizes("first")
    talks(world, 5)
    world.compacts()
    world.summarizes("second")

    assert "[summary] second" in users(world)
    assert "first" not in users(world)


def test_a_turn_that_does_not_fit_waits_for_a_summary_once() -> None:
    world = World(SMALL)
    talks(world, 6)
    world.says("<m7>")

    assert kinds(world.finds_too_long()) == ["CompactionStarted"]
    world.compacts()
    world.summarizes(SUMMARY)
    assert shown(world) == [5, 6, 7]
    assert kinds(world.finds_too_long()) == ["ContextNarrowed"], "there is no second summary"
    world.replies("<a7>")
    assert "without the older part" in world.texts[-1]
    assert shown(world) == [5, 6, 7], "what had to make room waits for the next summary"


def test_the_ladder_ends_in_a_sentence_and_history_is_as_it_was() -> None:
    world = World(SMALL)
    for number in (1, 2):
        world.says(f"<m{number}>")
        world.replies("", *calls("look"))
        world.runs("c1", f"<t{number}>" + LONG * 3)
        world.replies("seen")
    before = world.view
    world.says("<m3>", attachments=(Attachment(kind="photo", ref="r"),) * 2)
    note = ReadFile(kind="words", label="note", text="buy milk")
    world.reads(ReadFile(kind="picture", label="cat", sha="a" * 64), note)
    world.replies("<a3>", *calls("look"))
    world.runs("c1", "<t3>" + LONG * 3)

    taken = list[list[str]]()
    while world.turn:
        taken.append(kinds(world.finds_too_long()))
        assert "<m3>" in users(world) or not world.turn, "the open request is always there"
        if world.witness.wanted_first:
            world.compacts()
            taken.append(kinds(world.not_summarized()))

    assert taken == [
        ["CompactionStarted"],
        ["CompactionFailed"],
        ["ResultsShortened"],
        ["ContextNarrowed"],
        ["ContextNarrowed"],
        ["ResultsShortened"],
        ["FilesLeftOut"],
        ["FilesLeftOut"],
        ["TurnFailed"],
    ]
    assert "even without all that we said before" in world.texts[-1]
    assert "/new" in world.texts[-1]
    assert world.view == before
    results = [m.text for m in world.request().messages if isinstance(m, ToolMessage)]
    assert results == ["<t1>" + LONG * 3, "<t2>" + LONG * 3]


def test_what_was_shortened_for_an_answer_stays_short() -> None:
    world = World(replace(SMALL, strategy="full"))
    for _ in range(2):
        world.says("look")
        world.replies("", *calls("look"))
        world.runs("c1", LONG * 3)
        world.replies("seen")
    world.says("and now?")
    assert kinds(world.finds_too_long()) == ["ResultsShortened"]
    short = world.request()
    world.replies("that is it")
    world.says("thanks")

    assert all("left out, to make room" in m.text for m in short.messages if m.text.startswith(" "))
    assert world.request().messages[: len(short.messages)] == short.messages


def test_the_progress_of_the_open_request_is_whole_in_every_view() -> None:
    world = World(SMALL)
    talks(world, 4)
    world.says("<m5>")
    for number in range(3):
        world.replies(f"<step{number}>", *calls("look"))
        world.runs("c1", f"<t{number}>")
    world.finds_too_long()
    world.compacts()
    world.summarizes(SUMMARY)
    assert SUMMARY in users(world)

    while world.turn:
        assert "<m5>" in users(world)
        replies = [m.text for m in world.request().messages if isinstance(m, AssistantMessage)]
        results = [m.text for m in world.request().messages if isinstance(m, ToolMessage)]
        assert replies[-3:] == ["<step0>", "<step1>", "<step2>"]
        assert results == ["<t0>", "<t1>", "<t2>"]
        world.finds_too_long()


def test_a_summary_that_fails_is_told_and_not_made_again_until_there_is_more() -> None:
    world = crowded()
    world.compacts()
    before = world.view
    world.not_summarized()

    assert world.view == before
    assert "I wanted to sum up" in world.texts[-1]
    assert "error e2" in world.texts[-1]
    talks(world, 1, " a little")
    assert not world.witness.wanted_first
    talks(world, 1)
    assert world.witness.wanted_first, "the way out"


def test_a_summary_that_is_hardly_shorter_is_none() -> None:
    world = crowded()
    world.compacts()
    before = world.view
    world.summarizes("x" * 4_000)

    assert world.view == before
    assert "hardly shorter" in world.texts[-1]


def test_a_summary_that_says_nothing_is_none() -> None:
    world = crowded()
    world.compacts()
    before = world.view
    world.summarizes(" \n")

    assert world.view == before


def test_whoever_dies_over_a_summary_does_so_three_times_and_no_more() -> None:
    world = crowded()
    before = world.view
    for _ in range(3):
        world.compacts()
        world.crashes()
    world.compacts()

    assert not world.witness.wanted_first
    assert "it broke off each time" in world.texts[-1]
    assert world.view == before


def test_a_turn_during_which_a_summary_was_made_gets_no_other() -> None:
    world = crowded()
    world.says("<m8>")
    world.compacts()
    world.summarizes(SUMMARY)
    for number in range(3):
        world.replies("", *calls("look"))
        world.runs("c1", f"<t{number}>" + LONG)

    assert kinds(world.finds_too_long()) == ["ContextNarrowed"]


def test_a_background_summary_that_is_needed_now_is_waited_for() -> None:
    world = crowded()
    first = world.witness.wanted_first
    world.says("<m8>" + LONG * 5)

    assert not world.is_let_through()
    assert world.witness.wanted_first == first, "it is the same one"
    world.compacts()
    world.summarizes(SUMMARY)
    assert world.is_let_through()


def test_what_waits_is_answered_at_once_and_what_is_older_summed_up_beside_it() -> None:
    world = World(SMALL, measures=True)
    talks(world, 6)
    world.says("<m7>" + LONG)
    world.says("<m8>")
    world.replies("<a7>" + LONG)

    assert world.turn == 8
    assert 0 < world.witness.wanted_first <= 8
    world.replies("<a8>")
    world.compacts()
    world.summarizes(SUMMARY)
    assert 8 in shown(world)


def test_under_window_the_oldest_leave_seldom_and_silently() -> None:
    world = World(replace(SMALL, strategy="window"), measures=True)
    talks(world, 40)

    assert 0 < count(world, ev.Compacted) < 15
    assert count(world, ev.CompactionStarted) == 0
    assert len(world.texts) == 40, "only answers"
    assert shown(world)[-1] == 40


def test_under_full_nothing_leaves_before_it_must() -> None:
    world = World(replace(SMALL, strategy="full"), measures=True)
    talks(world, 8)
    assert shown(world) == [1, 2, 3, 4, 5, 6, 7, 8]
    talks(world, 8)

    assert count(world, ev.CompactionStarted) == 0
    assert shown(world)[-1] == 16
    assert sum("without the older part" in text for text in world.texts) == 1
    world.chooses("compact")
    talks(world, 1)
    assert count(world, ev.CompactionStarted) == 1, "nothing is lost for a summary"


def test_what_is_pinned_leaves_less_room_for_turns() -> None:
    world = World(SMALL, measures=True)
    world.says("<m1>")
    world.replies("<a1>")
    world.pins("p" * 4_000)
    talks(world, 3)
    world.compacts()
    world.summarizes(SUMMARY)

    assert shown(world) == [4], "the newest turn always"
    assert "p" * 4_000 in users(world)


def test_a_message_that_is_too_long_beside_the_pins_says_that_they_take_room() -> None:
    world = World(SMALL, measures=True)
    world.pins("p" * 6_000)
    world.says("m" * 4_000)
    world.replies("never")

    assert "/pins" in world.texts[-1]


def test_one_that_the_user_asks_for_is_told_where_it_was_asked() -> None:
    world = World(SMALL)
    talks(world, 5)
    assert world.wants_compaction("the names")
    world.compacts()
    world.summarizes(SUMMARY)

    assert "summed up 4 older turns" in world.texts[-1]
    assert world.said[-1].address == HOME


def test_there_is_nothing_to_sum_up_in_a_short_talk() -> None:
    world = World(SMALL)
    talks(world, 2, more="")

    assert world.wants_compaction() == ()


def test_what_was_wanted_ends_where_the_provider_refuses_what_it_would_sum_up() -> None:
    world = World(SMALL)
    talks(world, 4)
    for text in ("<m5>", "<m6>"):
        world.says(text)
        world.fails("refused")
        world.wants_compaction()
        world.replies("alone")

    assert shown(world) == [6]
    assert any("out of my view" in text for text in world.texts)
    late = ask.Summarize(at=world.now, first_turn=4, summary=SUMMARY)
    world.ask(late)
    assert shown(world) == [6]


def test_a_summary_that_failed_for_a_message_that_left_does_not_stand_in_the_way() -> None:
    world = World(SMALL, measures=True)
    talks(world, 5)
    world.says("m" * 12_000)
    assert not world.is_let_through()
    world.compacts()
    world.not_summarized()
    world.replies("never")
    assert "even without all that we said before" in world.texts[-1]

    talks(world, 2)
    assert world.witness.wanted_first


def test_pictures_of_before_outlast_a_message_that_is_too_long_with_one() -> None:
    world = World(replace(SMALL, strategy="full"))
    photo = (Attachment(kind="photo", ref="r"),)
    cat = ReadFile(kind="picture", label="cat", sha="a" * 64)
    world.says("<m1>", attachments=photo)
    world.reads(cat)
    world.replies("a cat")
    world.says("<m2>", attachments=photo)
    world.reads(cat)
    while world.turn:
        world.finds_too_long()

    world.says("<m3>")
    assert len(world.request().pictures) == 1


def test_pins_take_room_of_what_window_keeps() -> None:
    world = World(replace(SMALL, strategy="window"))
    talks(world, 1)
    world.pins("p" * 2_400)
    talks(world, 4)

    assert shown(world) == [3, 4, 5]


def test_who_asked_for_a_summary_is_told_that_window_was_quicker() -> None:
    world = World(replace(SMALL, strategy="window"))
    talks(world, 6)
    world.wants_compaction()
    talks(world, 2)

    assert sum("out of my view" in text for text in world.texts) == 1


@pytest.mark.parametrize(
    ("strategy", "goes_on"), [("full", False), ("window", False), ("auto", True)]
)
def test_who_chooses_to_have_nothing_summed_up_gets_no_summary(
    strategy: Strategy, goes_on: bool
) -> None:
    world = crowded()
    world.compacts()
    world.chooses(strategy)
    session = world.state.session

    assert bool(session and session.compaction) == goes_on


def test_a_turn_that_waited_for_a_summary_goes_on_without_it_when_another_strategy_is_chosen() -> (
    None
):
    world = World(SMALL, measures=True)
    talks(world, 6)
    world.says("<m7>" + LONG * 12)
    world.replies("never")
    assert world.turn and world.witness.wanted_first

    world.chooses("full")
    world.replies("<a7>")

    assert not world.turn
    assert "summed up" not in "".join(world.texts)
    assert shown(world)[-1] == 7


def test_what_the_user_asked_for_is_made_whatever_they_choose_then() -> None:
    world = crowded()
    world.wants_compaction()
    world.chooses("full")
    world.compacts()
    world.summarizes(SUMMARY)

    assert "summed up" in world.texts[-1]


@pytest.mark.parametrize("helps", [True, False])
def test_what_is_said_while_a_turn_waits_for_its_summary_goes_into_it(helps: bool) -> None:
    world = World(replace(SMALL, busy_mode="steer"), measures=True)
    talks(world, 6)
    world.says("<m7>" + LONG * 12)
    world.replies("never")
    world.says("<m8>")
    world.compacts()
    _ = world.summarizes(SUMMARY) if helps else world.not_summarized()
    world.replies("<a7>")

    assert not world.turn
    assert "<m8>" in users(world)
    assert world.state.turns == 7


@pytest.mark.parametrize("known", [0, 100_000], ids=["never told", "another model"])
def test_what_a_model_with_a_smaller_window_does_not_take_is_summed_up_too(known: int) -> None:
    world = World()
    for _ in range(9):
        world.says("<m>" + LONG)
        world.replies("yes" + LONG, size=RequestSize(window=known))
    world.says("and now?")

    size = RequestSize(estimated=3_000, counted=3_000, window=1_000)
    failure = ModelFailure(kind="too_long", detail="")
    world.ask(
        ask.Fail(
            at=world.now, turn=10, step=1, failure=failure, error_id="e", asked=False, size=size
        )
    )

    assert world.witness.wanted_first > 1
