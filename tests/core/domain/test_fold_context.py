"""What leaves the context comes back when that is undone, and what is learnt of sizes."""

import pytest
from msgspec.structs import replace

from core.domain import inputs as ask
from core.domain.fold_context import ENOUGH, LEAST, MOST
from core.domain.messages import RequestSize, Usage
from core.domain.policy import Policy
from core.domain.state import Session
from core.domain.window import context_tokens, fits, window_of
from tests.core.domain.samples import calls
from tests.core.domain.test_room import LONG, SMALL, SUMMARY, crowded, shown, talks, users
from tests.core.domain.world import World

DAY = 25 * 3600.0


def summed_up() -> World:
    world = crowded()
    world.compacts()
    world.summarizes(SUMMARY)
    return world


def session(world: World) -> Session:
    assert world.state.session
    return world.state.session


def test_undone_at_once_it_is_as_if_it_never_was() -> None:
    world = crowded()
    before = world.view
    world.compacts()
    world.summarizes(SUMMARY)
    world.undoes_compaction()

    assert world.view == before
    assert world.undoes_compaction() == (), "once"


def test_undone_after_more_turns_those_stay() -> None:
    world = summed_up()
    talks(world, 2)
    world.undoes_compaction()

    assert shown(world) == list(range(1, 10))
    assert "[summary]" not in users(world)


def test_what_was_undone_is_not_summed_up_again_at_once() -> None:
    world = summed_up()
    world.undoes_compaction()
    talks(world, 1, " a little")

    assert not world.witness.wanted_first


def test_undoing_the_second_summary_brings_the_first_one_back() -> None:
    world = summed_up()
    talks(world, 5)
    world.compacts()
    world.summarizes("second")
    world.undoes_compaction()

    assert f"[summary] {SUMMARY}" in users(world)
    assert "second" not in users(world)


def test_the_order_of_what_was_steered_in_is_the_same_after_an_undo() -> None:
    world = World(replace(SMALL, busy_mode="steer"))
    world.says("<m1>")
    world.replies("", *calls("look"))
    world.says("<steered>")
    world.runs("c1")
    world.replies("<a1>")
    talks(world, 4)
    before = world.request()
    world.wants_compaction()
    world.compacts()
    world.summarizes(SUMMARY)
    world.undoes_compaction()

    assert world.request() == before


def test_the_last_exchange_can_be_undone_and_then_the_one_before() -> None:
    world = World()
    talks(world, 3)
    world.undoes_turn()
    assert shown(world) == [1, 2]
    world.undoes_turn()
    assert shown(world) == [1]
    world.command("retry")

    assert world.turn == 0, "what was undone is not tried again"
    world.undoes_turn()
    assert world.undoes_turn() == ()


def test_a_summary_under_way_may_have_read_what_is_undone_and_is_none() -> None:
    world = crowded()
    world.compacts()
    late = ask.Summarize(at=world.now, first_turn=world.witness.wanted_first, summary=SUMMARY)
    world.undoes_turn()
    world.ask(late)

    assert shown(world) == [1, 2, 3, 4, 5, 6]


def test_what_is_tried_again_after_a_summary_is_answered_anew_in_its_place() -> None:
    world = summed_up()
    world.command("retry")
    assert users(world).count("<m7>") == 1
    world.replies("<again>")
    world.undoes_compaction()

    replies = [m.text for m in world.request().messages]
    assert shown(world) == [1, 2, 3, 4, 5, 6, 7]
    assert replies[-1] == "<again>"
    assert not [text for text in replies if text.startswith("<a7>")]


@pytest.mark.parametrize("way", ["new", "stop"])
def test_with_its_session_a_wanted_summary_ends(way: str) -> None:
    world = crowded()
    world.compacts()
    late = ask.Summarize(at=world.now, first_turn=world.witness.wanted_first, summary=SUMMARY)
    world.says("<m8>")
    world.command(way)
    world.ask(late)
    world.command("resume")

    assert shown(world) == list(range(1, 9))


def test_a_wanted_summary_keeps_no_session_from_being_over() -> None:
    world = crowded()
    world.compacts()
    late = ask.Summarize(at=world.now, first_turn=world.witness.wanted_first, summary=SUMMARY)
    world.passes(DAY)
    world.expires()
    world.ask(late)
    world.command("resume")

    assert shown(world) == list(range(1, 8))


def test_pins_outlive_summaries_and_sessions() -> None:
    world = World(SMALL, measures=True)
    world.says("<m1>")
    world.replies("<a1>")
    world.pins("my name is Ada")
    talks(world, 7)
    world.compacts()
    world.summarizes(SUMMARY)
    assert "[pinned] my name is Ada" in users(world)

    world.command("new")
    world.says("hello")
    assert "[pinned] my name is Ada" in users(world)
    world.replies("hello")
    world.passes(DAY)
    world.says("hello again")
    assert users(world).startswith("[pinned] my name is Ada")

    world.unpins(next(iter(world.witness.pins)))
    assert "Ada" not in users(world)


def test_the_providers_count_corrects_the_estimate() -> None:
    world = World()
    world.says("x" * 8_000)
    size = RequestSize(estimated=2_000, counted=2_200, overhead=200, window=50_000)
    world.replies("yes", size=size, usage=Usage(4_400, 5, 0.0))

    assert context_tokens(world.state) == pytest.approx(2 * (2_008 + 8) + 400, rel=0.02)
    assert window_of(world.state, world.policy) == 50_000
    assert not fits(world.state, RequestSize(counted=26_000, window=50_000), world.policy)
    assert fits(world.state, RequestSize(counted=24_000, window=50_000), world.policy)


def test_a_small_request_teaches_nothing_of_large_ones() -> None:
    world = World()
    world.says("hi")
    size = RequestSize(estimated=16, counted=ENOUGH - 1, overhead=20)
    world.replies("yes", size=size, usage=Usage(90_000, 5, 0.0))

    assert (session(world).scale, session(world).bias) == (1.0, 1.0)


def test_a_count_that_cannot_be_is_believed_within_bounds() -> None:
    world = World()
    for prompt, bound in ((900_000, MOST), (1, LEAST)):
        world.says("hi")
        size = RequestSize(estimated=2_000, counted=2_000)
        world.replies("yes", size=size, usage=Usage(prompt, 5, 0.0))
        assert session(world).bias == bound


def test_what_the_provider_found_too_long_is_not_sent_again() -> None:
    world = World(Policy(strategy="full"))
    talks(world, 4)
    world.says("<m5>" + LONG)
    refused = world.size()
    world.fails("too_long")
    world.replies("<a5>")

    assert not fits(world.state, refused, world.policy)
    assert fits(world.state, replace(refused, counted=refused.counted * 8 // 10), world.policy)


def test_another_model_may_take_more() -> None:
    world = World(Policy(strategy="full"))
    talks(world, 4)
    for window in (24_000, 100_000):
        world.says("more")
        world.fails("too_long")
        world.replies("yes", size=RequestSize(window=window))

    assert window_of(world.state, world.policy) == 100_000


def test_what_was_once_too_long_is_not_forgotten_over_something_longer() -> None:
    world = World(Policy(strategy="full"))
    talks(world, 2)
    for more in (LONG, LONG * 20):
        world.says(more)
        world.fails("too_long")
        world.replies("yes")

    assert window_of(world.state, world.policy) < 700


def test_what_is_learnt_of_the_window_is_in_the_providers_tokens() -> None:
    world = World(Policy(strategy="full"))
    talks(world, 4)
    world.says("more")
    size = RequestSize(estimated=2_000, counted=2_000)
    world.replies("yes", size=size, usage=Usage(4_000, 5, 0.0))
    world.says("and more")
    refused = world.size()
    world.fails("too_long")

    assert session(world).refused_tokens == 2 * refused.counted


def test_what_was_too_long_once_is_asked_of_a_model_that_takes_more() -> None:
    world = World(Policy(strategy="full"))
    world.says("hi")
    world.replies("yes", size=RequestSize(counted=9, window=24_000))
    world.says("<m2>")
    refused = world.size()
    world.fails("too_long")

    assert fits(world.state, replace(refused, window=100_000), world.policy)
