"""What the model sees is told in numbers, and how much of it can be chosen."""

import pytest

from core.domain import events as ev
from core.domain.messages import RequestSize, Usage
from core.domain.policy import Policy, Strategy
from tests.core.commands.running import run, summed_up, talked
from tests.core.domain.samples import calls
from tests.core.domain.world import World


def rows(reply: str) -> dict[str, str]:
    table = [line.split("|") for line in reply.splitlines() if line.startswith("| ")]
    return {name.strip(" *"): value.strip(" *") for _, name, value, _ in table[2:]}


def busy() -> World:
    """With pins, a summary, a tool's result and two turns."""
    world = talked("one", "two", "three")
    world.command("pin", "I am a vegetarian")
    world.says("four")
    world.replies("", *calls("look"))
    world.runs("c1", "x" * 4_000)
    world.replies("done")
    summed_up(world, 3, "summary " * 20)
    return world


def test_each_part_has_its_tokens_and_the_sum_is_theirs() -> None:
    world = busy()

    reply, events = run("/context", world=world)

    table = rows(reply)
    parts = [int(value.replace(",", "")) for name, value in table.items() if "together" not in name]
    assert list(table) == [
        "system and tools (not known yet)",
        "pinned (1)",
        "summary",
        "turns (2)",
        "tool results (1)",
        "together",
    ]
    assert table["tool results (1)"] == "1,008"
    assert table["together"].startswith(f"{sum(parts):,} of 24,000 (")
    assert "older turns out of view, summed up: 2" in reply
    assert events == ()


def test_a_summary_that_is_undone_hides_nothing() -> None:
    world = busy()
    world.command("undo")

    reply, _ = run("/context", world=world)

    assert "older turns out of view, none" in reply
    assert "summary" not in rows(reply)


def test_turns_that_just_left_are_gone() -> None:
    world = talked("one", "two")
    world.commit((ev.Compacted(first_turn=2),))

    assert "older turns out of view, gone: 1" in run("/context", world=world)[0]


def test_what_one_answer_alone_does_not_see_is_told() -> None:
    world = talked("one", "two", "three")
    world.says("four")
    world.commit((ev.ContextNarrowed(turn=4, first_turn=3, reason="too_long"),))

    assert "for this answer alone: 2" in run("/context", world=world)[0]


def test_without_a_conversation_there_is_little_to_see() -> None:
    reply, events = run("/context")

    assert "no conversation is open" in reply
    assert "0 of 24,000 (0%)" in reply
    assert events == ()


@pytest.mark.parametrize(
    ("strategy", "comes"),
    [
        ("full", "nothing leaves"),
        ("window", "above 18,000 tokens the oldest turns leave"),
        ("compact", "above 18,000 tokens older turns are summed up"),
        ("auto", "above 18,000 tokens older turns are summed up"),
    ],
)
def test_it_says_what_comes_next(strategy: Strategy, comes: str) -> None:
    world = talked("one", world=World(Policy(strategy=strategy)))

    reply, _ = run("/context", world=world)

    assert f"strategy `{strategy}`" in reply
    assert comes in reply


def test_a_summary_that_is_due_and_one_that_is_under_way_are_told() -> None:
    world = talked("one " * 200, "two " * 200, world=World(Policy(context_window=500)))

    under_way, _ = run("/context", world=world)
    world.commit((ev.CompactionFailed(reason="failed"),))
    in_vain, _ = run("/context", world=world)

    assert "being summed up just now" in under_way
    assert "once there are more of them" in in_vain


def test_one_that_is_due_is_told() -> None:
    world = World(Policy(context_window=120))
    talked("one " * 40, world=world)
    world.says("two " * 40)

    assert "after the coming answer" in run("/context", world=world)[0]


@pytest.mark.parametrize("strategy", ["full", "window", "compact", "auto"])
def test_a_strategy_is_chosen_for_the_conversation(strategy: Strategy) -> None:
    world = talked("one")

    world.command("context", strategy.upper())

    assert f"(`{strategy}`)" in world.texts[-1]
    assert f"strategy `{strategy}`" in run("/context", world=world)[0]
    assert run(f"/context {strategy}", world=world)[1] == ()


def test_it_may_be_chosen_before_the_first_word() -> None:
    world = World()

    world.command("context", "full")
    world.says("one")

    assert "strategy `full`" in run("/context", world=world)[0]


def test_it_may_be_chosen_while_an_answer_is_in_the_making() -> None:
    world = World()
    world.says("one")

    assert run("/context full", world=world)[1] == (ev.StrategyChosen(strategy="full"),)


def test_of_a_conversation_that_is_put_aside_nothing_is_chosen() -> None:
    world = World()
    world.says("one")
    world.command("stop")

    reply, events = run("/context full", world=world)

    assert "/resume" in reply
    assert events == ()


def test_anything_else_is_answered_with_what_there_is() -> None:
    reply, events = run("/context everything", world=talked("one"))

    assert all(f"`/context {name}`" in reply for name in ("full", "window", "compact", "auto"))
    assert events == ()


def test_the_context_of_a_provider_is_in_its_own_tokens() -> None:
    world = talked("one")
    world.says("word " * 2_000)
    size = RequestSize(estimated=2_600, counted=2_000, overhead=500, window=8_000)
    world.replies("yes", usage=Usage(prompt=4_000, completion=5), size=size)

    reply, _ = run("/context", world=world)

    table = rows(reply)
    assert table["system and tools"] == "1,000"
    assert "of 8,000 (" in table["together"]
