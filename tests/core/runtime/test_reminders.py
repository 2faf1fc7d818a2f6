"""A reminder says what it is about, whatever becomes of the turn that answers it."""

from datetime import timedelta
from typing import Any

import pytest

from core.domain.messages import ModelFailure
from core.domain.policy import Policy
from tests.core.domain.samples import reminder
from tests.core.runtime.house import KEY, Ground, Process, asks, passes
from tests.core.runtime.virtual import in_virtual_time

PILLS = "Reminder: take your pills"


async def reminded(*lines: Any, policy: Policy | None = None) -> tuple[Ground, Process]:
    """The reminder has just come due; the lines are what the model says to it."""
    ground = Ground("ok", *lines, policy=policy)
    process = await ground.starts()
    await process.hears("hello")
    await passes(3)
    due = ground.clock.now() + timedelta(seconds=30)
    wanted = reminder("r1", due, "take your pills")
    await process.sessions.change(KEY, lambda state, at: (wanted,))
    return ground, process


@pytest.mark.parametrize("kind", ["try_again", "never", "too_long", "refused"])
@in_virtual_time
async def test_while_the_model_is_down(kind: Any) -> None:
    ground, _ = await reminded(*[ModelFailure(kind=kind, detail="503")] * 2)
    await passes(40)
    assert PILLS in ground.chat.texts[-1]


@in_virtual_time
async def test_when_the_model_is_down_the_second_time_as_well() -> None:
    down = ModelFailure(kind="try_again", detail="503")
    ground, process = await reminded(down, down)
    await passes(40)
    await process.hears("/retry")
    await passes(3)
    assert PILLS in ground.chat.texts[1]
    assert PILLS in ground.chat.texts[-1]
    assert len(ground.chat.texts) == 4


@in_virtual_time
async def test_while_its_limit_is_reached_it_is_said_at_once_and_once() -> None:
    busy = ModelFailure(kind="try_again", detail="429", retry_after=600)
    ground, _ = await reminded(busy, busy, "there you are")
    await passes(40)
    assert PILLS in ground.chat.texts[-1]
    await passes(1300)
    assert [PILLS in text for text in ground.chat.texts] == [False, True, False, False]


@in_virtual_time
async def test_when_its_user_writes_just_then() -> None:
    ground, process = await reminded(asks("pay"), "fine", policy=Policy(busy_mode="interrupt"))
    ground.tools["pay"].seconds = 20
    await passes(35)
    await process.hears("hi there")
    await passes(5)
    assert PILLS in ground.chat.texts[-2]
    assert ground.chat.texts[-1] == "fine"


@pytest.mark.parametrize("command", ["/stop", "/new"])
@in_virtual_time
async def test_when_it_is_stopped(command: str) -> None:
    ground, process = await reminded(asks("pay"))
    ground.tools["pay"].seconds = 20
    await passes(35)
    await process.hears(command)
    await passes(5)
    assert sum(PILLS in text for text in ground.chat.texts) == 1


@in_virtual_time
async def test_when_it_has_too_many_steps() -> None:
    ground, _ = await reminded(asks("look"), policy=Policy(turn_max_steps=1))
    await passes(40)
    assert PILLS in ground.chat.texts[-1]


@in_virtual_time
async def test_an_answer_is_left_as_the_model_gives_it() -> None:
    ground, _ = await reminded("it is time for your pills")
    await passes(40)
    assert ground.chat.texts[1:] == ["it is time for your pills"]
