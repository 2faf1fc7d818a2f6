from datetime import timedelta
from typing import Any

import pytest

from core.domain.events import ReminderSet
from core.tools.remind_me import MOST_OPEN, TOOL
from tests.core.tools.harness import CHAT, START, Scene


@pytest.mark.parametrize(
    ("arguments", "after"),
    [
        ({"seconds": 10}, 10),
        ({"seconds": "90"}, 90),
        ({"seconds": 0.5, "at": None}, 0.5),
        ({"at": "2026-05-05T16:31:22+02:00"}, 60),
        ({"at": "2026-05-05T14:31:22Z", "seconds": 0}, 60),
        ({"at": "2026-05-05 14:31:22"}, 60),
        ({"seconds": 366 * 86400}, 366 * 86400),
    ],
)
async def test_a_reminder_is_an_event_with_its_time_and_place(
    arguments: dict[str, Any], after: float
) -> None:
    output = await TOOL.run({"text": " stretch "} | arguments, Scene().context())

    assert output.events == (
        ReminderSet(
            reminder_id="20260505_143022_a1b2c3d4/1/1/c",
            due_at=START + timedelta(seconds=after),
            text="stretch",
            address=CHAT,
        ),
    )
    assert not output.failed


async def test_the_model_is_told_when_in_utc() -> None:
    arguments = {"text": "stretch", "at": "2026-05-05T23:00:00-02:00"}

    output = await TOOL.run(arguments, Scene().context())

    assert output.value == "Reminder set for 2026-05-06 01:00:00 UTC: stretch"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"text": "x"}, "either seconds"),
        ({"text": "x", "seconds": 5, "at": "2026-05-05T15:00:00Z"}, "not both"),
        ({"text": "x", "seconds": 0}, "not in the future"),
        ({"text": "x", "seconds": -5}, "not in the future"),
        ({"text": "x", "at": "2026-05-05T14:30:22Z"}, "it is 2026-05-05 14:30:22 UTC now"),
        ({"text": "x", "at": "2020-01-01"}, "not in the future"),
        ({"text": "x", "at": "tomorrow"}, "no ISO 8601 time"),
        ({"text": "x", "at": "9999-12-31T23:59:59-12:00"}, "no ISO 8601 time"),
        ({"text": "x", "seconds": 367 * 86400}, "more than a year"),
        ({"text": "x", "seconds": 1e300}, "one year"),
        ({"text": "x", "seconds": "nan"}, "one year"),
        ({"text": "x", "seconds": "inf"}, "one year"),
        ({"text": " \n", "seconds": 5}, "text is empty"),
        ({"text": "x" * 1001, "seconds": 5}, "too long"),
    ],
)
async def test_what_cannot_be_is_said_and_sets_nothing(
    arguments: dict[str, Any], hint: str
) -> None:
    output = await TOOL.run(arguments, Scene().context())

    assert output.failed
    assert hint in output.value
    assert output.events == ()


async def test_there_is_an_end_to_open_reminders() -> None:
    arguments = {"text": "x", "seconds": 5}

    assert not (await TOOL.run(arguments, Scene().context(MOST_OPEN - 1))).failed
    assert (await TOOL.run(arguments, Scene().context(MOST_OPEN))).failed
