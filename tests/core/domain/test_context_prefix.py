"""Two following requests begin alike, to the byte, so that providers' caches of prompts work."""

from itertools import pairwise

import pytest

from core.domain.context import MOST_PICTURES, PICTURES_KEPT
from core.domain.messages import Attachment, ChatMessage, ReadFile
from core.domain.policy import Policy, Strategy
from tests.core.domain.samples import calls
from tests.core.domain.world import World

TURNS = 200
PIN_EVERY = 70
FILES_EVERY = 20
FILES = (Attachment(kind="photo", ref="r"), Attachment(kind="document", ref="n"))
CAT = ReadFile(kind="picture", label="cat", sha="a" * 64, mime="image/jpeg")
NOTE = ReadFile(kind="words", label="note", text="buy milk")

Sent = tuple[int, tuple[ChatMessage, ...]]
"""A request, and how many compactions there were before it."""


def sends(world: World) -> Sent:
    assert world.is_let_through()
    return world.reached["Compacted"], world.request().messages


def exchange(world: World, number: int) -> list[Sent]:
    """A turn with a tool, now and then with files or a pin; the requests that it took."""
    sent: list[Sent] = []
    world.says(f"message {number}", attachments=FILES if number % FILES_EVERY == 0 else ())
    for _ in list(world.witness.unread):
        world.reads(CAT, NOTE)
    for step in range(2):
        sent.append(sends(world))
        world.replies(f"step {step}", *calls("look"))
        world.runs("c1", f"result {number}" + " found" * 20)
    sent.append(sends(world))
    world.replies(f"answer {number}")
    if number % PIN_EVERY == 0:
        world.pins(f"pinned {number}")
    if world.witness.wanted_first:
        world.compacts()
        world.summarizes(f"## Goal\n- until {number}")
    return sent


def follows(before: Sent, after: Sent) -> bool:
    """The newest words of a user may be followed by more; nothing before them changes."""
    old, new = before[1], after[1]
    return new[: len(old) - 1] == old[:-1] and new[len(old) - 1].text.startswith(old[-1].text)


@pytest.mark.parametrize("strategy", ["compact", "auto", "window"])
def test_over_two_hundred_turns_only_a_compaction_changes_what_was_sent(strategy: Strategy) -> None:
    world = World(Policy(strategy=strategy, context_window=8_000), measures=True)
    sent: list[Sent] = []
    for number in range(1, TURNS + 1):
        sent += exchange(world, number)

    changed = [(old[0], new[0]) for old, new in pairwise(sent) if not follows(old, new)]
    assert len(sent) == 3 * TURNS
    assert all(before < after for before, after in changed), "nothing else changes it"
    assert 0 < len(changed) <= TURNS // 10
    assert world.reached["found too long"] == 0


def test_pictures_leave_several_at_once_and_between_that_nothing_changes() -> None:
    world = World(Policy(strategy="full", context_window=500_000), measures=True)
    sent: list[Sent] = []
    many: list[int] = []
    for number in range(1, TURNS + 1):
        world.says(f"message {number}", attachments=FILES[:1])
        world.reads(CAT)
        sent.append(sends(world))
        many.append(len(world.request().pictures))
        world.replies(f"answer {number}")

    changed = [not follows(old, new) for old, new in pairwise(sent)]
    fewer = [new < old for old, new in pairwise(many)]
    assert changed == fewer
    assert 0 < sum(changed) <= TURNS // 6
    assert set(many[MOST_PICTURES:]) == set(range(PICTURES_KEPT, MOST_PICTURES + 1))


def test_a_message_that_waited_comes_behind_what_was_pinned_meanwhile() -> None:
    world = World(Policy(busy_mode="steer"))
    world.says("do it")
    world.says("and be quick")
    world.pins("my name is Ada")
    before = sends(world)
    world.fails("try_again", retry_after=20.0)
    world.passes(20.0)
    world.wakes()

    after = sends(world)
    assert "my name is Ada" in str(before) and "and be quick" in str(after)
    assert after != before and follows(before, after)


def test_a_new_pin_comes_behind_one_whose_place_has_left() -> None:
    world = World(Policy(busy_mode="queue"))
    world.says("do it")
    world.replies("", *calls("look"))
    world.says("and that")
    world.pins("my name is Ada")
    world.command("new")
    before = sends(world)
    world.pins("I like tea")

    after = sends(world)
    assert "I like tea" in str(after)
    assert follows(before, after)
