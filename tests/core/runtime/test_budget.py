"""What may be spent a day: told before it is over, refused when it is, lifted, and never lost."""

import asyncio
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from core.domain import events as ev
from core.domain.messages import ModelReply, Usage
from core.domain.policy import Durability, Policy
from core.domain.spending import Meter
from core.errors import StorageError
from tests.core.domain.samples import HOME, reminder
from tests.core.runtime.house import KEY, Ground, Process, asks, passes, sends
from tests.core.runtime.virtual import START, VirtualClock, in_virtual_time

TODAY = START.date()
DIME = Policy(daily_usd_per_user=0.1)
ELSEWHERE = replace(HOME, chat="G", chat_type="group")


def costs(usd: float, text: str = "ok", tokens: int = 100) -> ModelReply:
    return ModelReply(text=text, usage=Usage(tokens, 0, usd), model="scripted")


class Calendar(VirtualClock):
    """Hours go by without a second of it being lived through."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


async def living(*lines: Any, policy: Policy = DIME) -> tuple[Ground, Process]:
    ground = Ground(*lines, policy=policy)
    ground.clock = Calendar()
    return ground, await ground.starts()


def hours_go_by(ground: Ground, hours: float) -> None:
    assert isinstance(ground.clock, Calendar)
    ground.clock.ahead += timedelta(hours=hours)


async def owner_says(process: Process, text: str) -> None:
    await process.hears(text, user="1", address=replace(HOME, chat="1"), trusted=True)
    await passes(3)


async def says(process: Process, text: str, **more: Any) -> None:
    await process.hears(text, **more)
    await passes(3)


async def stands(ground: Ground, person: str = "7", day: date = TODAY) -> Meter:
    return await ground.store.meter(day, "chat", person)


@in_virtual_time
async def test_at_the_limit_it_is_said_and_the_model_is_not_asked() -> None:
    ground, process = await living(costs(0.1), costs(0.1))
    await says(process, "one")
    await says(process, "two")
    told = ground.chat.texts[-1]
    assert "Today's limit of $0.10 for one person is reached" in told
    assert "2026-05-06 00:00 UTC" in told
    assert "`/lift chat:7`" in told
    assert len(ground.script.requests) == 1
    assert await ground.outcomes() == {"answered": 1, "failed": 1}


@in_virtual_time
async def test_the_owner_lifts_it_and_the_message_is_answered() -> None:
    ground, process = await living(costs(0.1), costs(0.1, "there you are"), costs(9))
    await says(process, "one")
    await says(process, "two")
    await says(process, "/lift chat:7")
    assert "Only the owner" in ground.chat.texts[-1]
    await owner_says(process, "/lift chat:7")
    await says(process, "/retry")
    assert ground.chat.texts[-1] == "there you are"
    assert await ground.outcomes() == {"answered": 5}
    await says(process, "three")
    assert len(ground.script.requests) == 3


@in_virtual_time
async def test_who_is_lifted_lifts_nobody_else() -> None:
    ground, process = await living(costs(0.1), costs(0.1), "never")
    await says(process, "one")
    await says(process, "one", user="8", address=replace(HOME, chat="8"))
    await owner_says(process, "/lift 8")
    await says(process, "two")
    assert "is reached" in ground.chat.texts[-1]


@in_virtual_time
async def test_at_midnight_the_day_is_over() -> None:
    ground, process = await living(costs(0.1), costs(0.02, "good morning"), costs(0.02))
    await says(process, "one")
    await says(process, "two")
    hours_go_by(ground, 9.4)
    await says(process, "three")
    assert "is reached" in ground.chat.texts[-1]
    hours_go_by(ground, 0.2)
    await says(process, "/retry")
    assert ground.chat.texts[-1] == "good morning"
    tomorrow = TODAY + timedelta(days=1)
    assert (await stands(ground, day=tomorrow)).person.cost == 0.02
    assert (await stands(ground)).person.cost == 0.1


@pytest.mark.parametrize("how", ["dies", "stops"])
@in_virtual_time
async def test_a_restart_forgets_nothing(how: str) -> None:
    ground, process = await living(costs(0.09), costs(0.02), costs(0.02))
    await says(process, "one")
    assert "90%" in ground.chat.texts[-1]
    ended = {"dies": process.dies, "stops": process.stops}[how]()
    await (ended or passes(1))
    process = await ground.starts()
    await passes(20)
    await says(process, "two")
    await says(process, "three")
    assert "is reached" in ground.chat.texts[-1]
    assert sum("midnight UTC; /usage" in text for text in ground.chat.texts) == 1
    assert len(ground.script.requests) == 2


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kill", range(1, 6))
@in_virtual_time
async def test_wherever_it_dies_each_reply_counts_once(kill: int, when: str) -> None:
    step = replace(asks("look"), usage=Usage(100, 5, 0.01))
    ground, process = await living(step, *[costs(0.02)] * 3, policy=Policy(daily_usd_per_user=9))
    left = [kill]

    def killer(moment: str) -> bool:
        left[0] -= moment == when
        return left[0] == 0

    process.disk.killer = killer
    await asyncio.gather(process.hears("one"), return_exceptions=True)
    await passes(5)
    assert process.disk.dead
    process.dies()
    process = await ground.starts()
    await passes(40)
    await says(process, "two")
    state = await process.state()
    assert (await stands(ground)).person == state.session.usage
    assert (await stands(ground)).person.total > 0


@in_virtual_time
async def test_little_is_left_is_said_once_wherever_one_talks() -> None:
    ground, process = await living(costs(0.07), costs(0.015), costs(0.001), costs(0.001))
    await says(process, "one")
    await says(process, "two")
    await says(process, "three", address=ELSEWHERE)
    await says(process, "four")
    warned = [text for text in sends(ground) if "midnight UTC; /usage" in text]
    assert len(warned) == 1
    assert "you have used $0.0850 of $0.10, 85%" in warned[0]


@in_virtual_time
async def test_the_whole_services_limit_stops_everyone_until_it_is_lifted() -> None:
    ground, process = await living(
        costs(0.5), costs(0.4), costs(0.1), "never", policy=Policy(daily_usd=1.0)
    )
    others = {"user": "8", "address": replace(HOME, chat="8")}
    await says(process, "one")
    assert ground.chat.texts == ["ok"]
    await says(process, "two", **others)
    assert "all of us together have used $0.90 of $1.00" in ground.chat.texts[-1]
    await says(process, "three")
    assert ground.chat.texts[-1] == "ok"
    await says(process, "four", **others)
    assert "$1.00 for all of us together is reached" in ground.chat.texts[-1]
    await owner_says(process, "/lift all")
    await says(process, "/retry", **others)
    assert ground.chat.texts[-1] == "never"


@in_virtual_time
async def test_a_model_without_a_price_is_counted_in_tokens() -> None:
    ground, process = await living(
        costs(0, tokens=800), costs(0, tokens=300), policy=Policy(daily_tokens_per_user=1000)
    )
    await says(process, "one")
    assert "you have used 800 tokens of 1,000 tokens, 80%" in ground.chat.texts[-1]
    await says(process, "two")
    await says(process, "three")
    assert "limit of 1,000 tokens for one person is reached" in ground.chat.texts[-1]


@pytest.mark.parametrize("grade", ["sync", "async", "exit"])
@in_virtual_time
async def test_a_turn_of_many_steps_ends_at_the_limit(grade: Durability) -> None:
    """What is not written yet counts, too."""
    step = replace(asks("look"), usage=Usage(100, 5, 0.04))
    policy = Policy(daily_usd_per_user=0.1, durability=grade)
    ground, process = await living(*[step] * 5, policy=policy)
    process.disk.slow["commit"] = 0.5
    await process.hears("look around")
    await passes(30)
    assert "is reached" in ground.chat.texts[-1]
    assert len(ground.script.requests) == 3
    assert (await stands(ground)).person == Usage(300, 15, 0.12)


@in_virtual_time
async def test_what_was_spent_may_be_written_as_late_as_its_reply() -> None:
    step = replace(asks("look"), usage=Usage(100, 5, 0.01))
    policy = Policy(daily_usd_per_user=1.0, durability="exit")
    ground, process = await living(step, costs(0.02), policy=policy)
    ground.tools["look"].seconds = 5
    await process.hears("look around")
    await passes(3)
    assert (await process.state()).session.usage.cost == 0.01
    assert (await stands(ground)).person == Usage()
    await passes(5)
    assert (await stands(ground)).person.cost == 0.03


@in_virtual_time
async def test_a_reminder_is_paid_by_who_wrote_last() -> None:
    ground, process = await living(costs(0.01), costs(0.02, "time to stretch"))
    await says(process, "remind me")
    wanted = reminder("r1", ground.clock.now() + timedelta(seconds=30))
    await process.sessions.change(KEY, lambda state, at: (wanted,))
    await passes(40)
    assert ground.chat.texts[-1] == "time to stretch"
    assert (await stands(ground)).person.cost == 0.03


def wanted(reason: ev.CompactReason) -> ev.CompactionStarted:
    return ev.CompactionStarted(first_turn=2, reason=reason, address=HOME)


@pytest.mark.parametrize(("reason", "told"), [("background", False), ("asked", True)])
@in_virtual_time
async def test_no_summary_is_made_at_the_limit(reason: ev.CompactReason, told: bool) -> None:
    ground, process = await living(costs(0.05, "a" * 4000), costs(0.05))
    await says(process, "one")
    await says(process, "two")
    await process.sessions.change(KEY, lambda state, at: (wanted(reason),))
    await passes(10)
    state = await process.state()
    assert state.session.compaction is None
    assert {entry.turn for entry in state.session.entries} == {1, 2}
    assert len(ground.script.requests) == 2
    assert ("today's limit on what models may cost" in ground.chat.texts[-1]) is told


@in_virtual_time
async def test_a_summary_is_paid_by_whose_conversation_it_is() -> None:
    ground, process = await living(costs(0.01, "a" * 4000), costs(0.01), costs(0.05, "## Goal\nx"))
    await says(process, "one")
    await says(process, "two")
    await process.sessions.change(KEY, lambda state, at: (wanted("background"),))
    await passes(10)
    assert len(ground.script.requests) == 3
    assert (await stands(ground)).person.cost == 0.07


@in_virtual_time
async def test_without_limits_nothing_is_looked_up() -> None:
    ground, process = await living(costs(0.1), policy=Policy())
    process.disk.slow["meter"] = 10_000.0
    await says(process, "one")
    assert ground.chat.texts == ["ok"]
    assert (await stands(ground)).person.cost == 0.1


@in_virtual_time
async def test_while_the_database_is_away_nobody_is_asked() -> None:
    ground, process = await living(costs(0.1))
    real, away = ground.store.meter, [True]

    async def meter(day: date, platform: str, person: str) -> Meter:
        if away[0]:
            raise StorageError("the connection broke")
        return await real(day, platform, person)

    ground.store.meter = meter
    await process.hears("one")
    await passes(20)
    assert ground.script.requests == []
    away[0] = False
    await passes(60)
    assert ground.chat.texts[0] == "ok"


@in_virtual_time
async def test_usage_tells_what_it_cost_and_what_is_left() -> None:
    policy = Policy(daily_usd_per_user=0.5, daily_tokens_per_user=5000, daily_usd=3)
    ground, process = await living(costs(0.1), costs(0.2), costs(0.3), policy=policy)
    await says(process, "one")
    hours_go_by(ground, 10)
    await says(process, "two")
    await says(process, "one", user="8", address=replace(HOME, chat="8"))
    await says(process, "/usage")
    told = ground.chat.texts[-1].splitlines()
    assert told == [
        "- this conversation: 200 tokens (200 in, 0 out), $0.3000",
        "- you, today: 100 tokens (100 in, 0 out), $0.2000",
        "- limit a day for one person: $0.50, $0.30 left until midnight UTC",
        "- limit a day for one person: 5,000 tokens, 4,900 tokens left until midnight UTC",
        "- you, this month: 200 tokens (200 in, 0 out), $0.3000",
        "- limit a day for all of us: $3.00, $2.50 left until midnight UTC",
    ]
    await owner_says(process, "/usage")
    assert ground.chat.texts[-1].splitlines()[-5:] == [
        "- all of us, today: 200 tokens (200 in, 0 out), $0.5000",
        "- limit a day for all of us: $3.00, $2.50 left until midnight UTC",
        "- most of it:",
        "  - `chat:8`: 100 tokens (100 in, 0 out), $0.3000",
        "  - `chat:7`: 100 tokens (100 in, 0 out), $0.2000",
    ]


@in_virtual_time
async def test_of_all_that_was_refused_the_newest_is_answered_with_the_rest_in_view() -> None:
    ground, process = await living(costs(0.2), costs(0.0, "back"))
    await says(process, "hi")
    await says(process, "one")
    await says(process, "two")
    assert "/retry then answers the newest" in ground.chat.texts[-1]

    await owner_says(process, "/lift 7")
    await says(process, "/retry")

    assert ground.chat.texts[-1] == "back"
    asked = ground.script.requests[-1].messages[-1].text
    assert "one" in asked
    assert asked.endswith("two")


@pytest.mark.parametrize(("tool", "is_warned"), [("pay", True), ("look", False)])
@in_virtual_time
async def test_what_was_done_before_the_limit_is_not_done_twice(tool: str, is_warned: bool) -> None:
    ground, process = await living(
        replace(asks(tool), usage=Usage(100, 0, 0.2)), costs(0.0, "well paid")
    )
    await says(process, "pay it")
    assert ("“go on”" in ground.chat.texts[-1]) == is_warned

    await owner_says(process, "/lift 7")
    await says(process, "go on")

    assert ground.chat.texts[-1] == "well paid"
    assert ground.tools[tool].started.total() == 1
    assert f"{tool}: done" in str(ground.script.requests[-1].messages)
