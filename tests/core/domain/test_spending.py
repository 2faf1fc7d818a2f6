"""Which limit is reached or near, whom a call is charged to, and what is said of it."""

from datetime import UTC, date, datetime

import pytest
from msgspec.structs import replace

from core.domain import events as ev
from core.domain import inputs as ask
from core.domain.decide import decide
from core.domain.fold import fold
from core.domain.messages import ModelReply, Usage
from core.domain.outputs import Outputs, outputs
from core.domain.policy import Policy
from core.domain.spending import Limit, Mark, MarkKind, Meter, Spent, ends, neared, reached
from core.domain.state import SessionState
from tests.core.domain.samples import HOME, KEY, START, calls, inbound, reminder
from tests.core.domain.world import World

TODAY = START.date()
CAPPED = Policy(daily_usd_per_user=1.0, daily_tokens_per_user=1000, daily_usd=10.0)


def meter(person: Usage = Usage(), service: Usage = Usage(), *marks: MarkKind) -> Meter:  # noqa: B008
    return Meter(day=TODAY, person=person, service=service, marks=frozenset(marks))


def out(state: SessionState, *events: ev.Event, at: datetime = START) -> Outputs:
    log = tuple(ev.Recorded(n, at, event) for n, event in enumerate(events, state.seq + 1))
    return outputs(state, log, Policy())


def said(world: World, *events: ev.Event) -> list[str]:
    return [one.text for one in out(world.state, *events, at=world.now).said]


def told(world: World, before: Usage, cost: float, *marks: MarkKind) -> list[str]:
    """What is said beside the reply, which costs so much."""
    reply = ModelReply(text="", calls=calls("look"), usage=Usage(1, 1, cost))
    wish = ask.Reply(
        at=world.now,
        turn=world.turn,
        step=world.step,
        reply=reply,
        effects=("read_only",),
        meter=meter(before, before, *marks),
    )
    return said(world, *decide(world.state, wish, world.policy))


@pytest.mark.parametrize(
    ("person", "service", "limit"),
    [
        (Usage(0, 0, 0.99), Usage(), None),
        (Usage(0, 0, 1.0), Usage(), "usd"),
        (Usage(600, 399), Usage(), None),
        (Usage(600, 400), Usage(), "tokens"),
        (Usage(), Usage(9, 9, 9.99), None),
        (Usage(), Usage(9, 9, 10.5), "service"),
    ],
)
def test_a_limit_is_reached_when_nothing_is_left(
    person: Usage, service: Usage, limit: Limit | None
) -> None:
    assert reached(meter(person, service), CAPPED) == limit
    assert reached(meter(person, service), Policy()) is None


def test_a_limit_that_is_lifted_does_not_count() -> None:
    much = Usage(9999, 0, 99.0)
    assert reached(meter(much, Usage(), "lifted"), CAPPED) is None
    assert reached(meter(much, much, "lifted"), CAPPED) == "service"
    assert reached(meter(much, much, "all_lifted"), CAPPED) == "usd"
    assert reached(meter(much, much, "lifted", "all_lifted"), CAPPED) is None
    assert neared(meter(much, much, "lifted", "all_lifted"), CAPPED) == ()


def test_a_limit_is_near_at_four_fifths_until_someone_was_told() -> None:
    assert neared(meter(Usage(0, 0, 0.79)), CAPPED) == ()
    assert neared(meter(Usage(800, 0, 0.8), Usage(0, 0, 8.0)), CAPPED) == (
        "usd",
        "tokens",
        "service",
    )
    assert neared(meter(Usage(800, 0, 0.8), Usage(), "usd"), CAPPED) == ("tokens",)


def test_a_day_ends_at_midnight() -> None:
    assert ends(date(2026, 12, 31)) == datetime(2027, 1, 1, tzinfo=UTC)


def test_who_crosses_four_fifths_is_told_what_was_spent_and_until_when() -> None:
    world = World(Policy(daily_usd_per_user=1.0))
    world.says()
    (notice,) = told(world, Usage(1, 1, 0.5), 0.35)
    assert "you have used $0.85 of $1.00, 85%" in notice
    assert "midnight UTC" in notice


def test_for_the_whole_service_it_is_said_of_all_of_us() -> None:
    world = World(Policy(daily_usd=1.0))
    world.says()
    (notice,) = told(world, Usage(1, 1, 0.5), 0.35)
    assert "all of us together have used $0.85 of $1.00" in notice


def test_whoever_was_told_is_told_nothing() -> None:
    world = World(Policy(daily_usd_per_user=1.0))
    world.says()
    assert told(world, Usage(1, 1, 0.5), 0.35, "usd") == []
    assert told(world, Usage(1, 1, 0.2), 0.1) == []


def test_over_midnight_what_was_known_of_yesterday_warns_nobody() -> None:
    world = World(Policy(daily_usd_per_user=1.0))
    world.says()
    world.passes(10 * 3600)
    assert told(world, Usage(1, 1, 0.5), 0.35) == []


@pytest.mark.parametrize(
    ("limit", "cap", "lift"),
    [
        ("usd", "$1.00 for one person", "/lift chat:7"),
        ("tokens", "1,000 tokens for one person", "/lift chat:7"),
        ("service", "$10.00 for all of us together", "/lift all"),
    ],
)
def test_who_is_over_is_told_which_limit_until_when_and_who_can_lift_it(
    limit: Limit, cap: str, lift: str
) -> None:
    world = World(CAPPED)
    world.says()
    wish = ask.OverBudget(at=world.now, turn=1, step=1, limit=limit)
    events = decide(world.state, wish, world.policy)
    (sentence,) = said(world, *events)
    assert cap in sentence
    assert lift in sentence
    assert "2026-05-06 00:00 UTC" in sentence
    assert "/retry" in sentence
    assert [outcome for _, outcome in out(world.state, *events).settled] == ["failed"]


def test_a_limit_that_a_later_step_found_is_nothing_to_an_earlier_one() -> None:
    world = World(CAPPED)
    world.says()
    late = ask.OverBudget(at=world.now, turn=1, step=2, limit="usd")
    assert decide(world.state, late, world.policy) == ()


def test_every_model_call_is_charged_to_whom_it_answers() -> None:
    world = World()
    world.says()
    cost = Usage(10, 5, 0.5, 3)
    reply = ev.ModelReplied(turn=1, step=1, text="hi", usage=cost)
    assert out(world.state, reply).spent == (Spent(TODAY, "chat", "7", cost),)
    free = ev.ModelReplied(turn=1, step=1, text="hi")
    assert out(world.state, free).spent == ()


def test_the_newest_of_several_people_pays_and_a_reminder_is_the_last_writers() -> None:
    world = World()
    world.says("one")
    message = replace(inbound("two", 2), user="8")
    world.ask(ask.Receive(at=world.now, inbound=message))
    assert world.state.spender == "7"
    world.replies("there")
    assert world.state.spender == "8"
    world.replies("and you")
    world.commit((reminder("r1", world.now),))
    world.reminds("r1")
    assert world.state.turn is not None
    assert world.state.spender == "8"


def test_a_person_is_known_by_workspace_too() -> None:
    world = World()
    world.says(address=replace(HOME, workspace="T1"))
    assert world.state.spender == "T1.7"


def test_a_state_of_an_older_version_charges_nobody_it_does_not_know() -> None:
    assert SessionState(key=KEY).spender == ""


def test_summaries_cost_too_the_ones_that_failed_included() -> None:
    world = World()
    world.says()
    world.replies("one")
    cost = Usage(10, 5, 0.5)
    made = ev.Compacted(first_turn=1, summary="s", usage=cost)
    assert out(world.state, made).spent == (Spent(TODAY, "chat", "7", cost),)
    start = ev.CompactionStarted(first_turn=1, reason="background", address=HOME)
    failed = ev.CompactionFailed(reason="failed", usage=cost)
    assert out(world.state, start, failed).spent == (Spent(TODAY, "chat", "7", cost),)


@pytest.mark.parametrize(("reason", "many"), [("background", 0), ("too_long", 0), ("asked", 1)])
def test_a_summary_that_a_limit_forbids_is_told_to_who_asked_for_it(
    reason: ev.CompactReason, many: int
) -> None:
    world = World()
    world.says()
    world.replies("one")
    start = ev.CompactionStarted(first_turn=1, reason=reason, address=HOME)
    state = fold(world.state, (ev.Recorded(world.state.seq + 1, START, start),))
    wish = ask.NotSummarized(at=START, first_turn=1, error_id="", reason="over_budget")
    events = decide(state, wish, Policy())
    assert events == (ev.CompactionFailed(reason="over_budget"),)
    notices = out(state, *events).said
    assert len(notices) == many
    assert all("today's limit" in one.text for one in notices)


def test_a_notice_and_a_lift_are_remembered_for_the_day() -> None:
    world = World()
    world.says()
    near = [
        ev.CapNeared(limit=limit, spent=8, cap=10, address=HOME)
        for limit in ("usd", "tokens", "service")
    ]
    lifts = (ev.CapsLifted(platform="chat", user="9"), ev.CapsLifted())
    assert out(world.state, *near, *lifts).marks == (
        Mark(TODAY, "chat", "7", "usd"),
        Mark(TODAY, "chat", "7", "tokens"),
        Mark(TODAY, "", "", "service"),
        Mark(TODAY, "chat", "9", "lifted"),
        Mark(TODAY, "", "", "all_lifted"),
    )
