"""What every store promises of what models cost: exact sums, once, by person and day."""

import asyncio
from datetime import date, timedelta
from typing import Any

import pytest

from core.domain.messages import Usage
from core.domain.spending import Mark, MarkKind, Meter, Spent
from core.errors import ConflictError
from core.ports import Store
from tests.contract.values import KEY, OTHER, at, commit, put_aside, said, update

TODAY = date(2026, 5, 5)
YESTERDAY = TODAY - timedelta(days=1)
SLACK = "agent:main:slack:dm:t.7"
CALL = Usage(100, 10, 0.1, 40)


def spent(
    usage: Usage = CALL, person: str = "7", day: date = TODAY, platform: str = "telegram"
) -> Spent:
    return Spent(day, platform, person, usage)


def mark(what: MarkKind, person: str = "7", platform: str = "telegram") -> Mark:
    return Mark(TODAY, platform, person, what)


async def spend(store: Store, key: str, seq: int, *made: Spent, **rest: Any) -> None:
    await store.commit(commit(key, seq, said(), spent=made, **rest))


async def test_nothing_was_spent_yet(store: Store) -> None:
    assert await store.meter(TODAY, "telegram", "7") == Meter(day=TODAY)
    assert await store.spent("telegram", "7", YESTERDAY, TODAY) == Usage()
    assert await store.spent_most(TODAY) == ()
    assert await store.spent_in_all() == {}


async def test_each_commit_adds_to_what_was_before_to_the_last_digit(store: Store) -> None:
    for seq in range(10):
        await spend(store, KEY, seq, spent())
    meter = await store.meter(TODAY, "telegram", "7")
    assert meter.person == meter.service == Usage(1000, 100, 1.0, 400)


async def test_what_is_too_cheap_for_a_cent_adds_up_too(store: Store) -> None:
    for seq in range(5):
        await spend(store, KEY, seq, spent(Usage(1, 1, 0.000_000_2)))
    assert (await store.meter(TODAY, "telegram", "7")).person == Usage(5, 5, 0.000_001)


async def test_several_of_one_commit_all_count(store: Store) -> None:
    await spend(store, KEY, 0, spent(), spent(), spent(day=YESTERDAY))
    assert (await store.meter(TODAY, "telegram", "7")).person == CALL + CALL
    assert (await store.meter(YESTERDAY, "telegram", "7")).person == CALL


async def test_persons_and_days_are_apart_and_the_service_is_all_of_them(store: Store) -> None:
    await spend(store, KEY, 0, spent(), spent(person="8"), spent(day=YESTERDAY))
    await spend(store, SLACK, 0, spent(person="t.7", platform="slack"))
    meter = await store.meter(TODAY, "telegram", "7")
    assert (meter.person, meter.service.total) == (CALL, 3 * CALL.total)
    assert (await store.meter(TODAY, "slack", "7")).person == Usage()
    assert (await store.meter(YESTERDAY, "telegram", "7")).service == CALL


async def test_a_commit_that_is_refused_spends_nothing(store: Store) -> None:
    await spend(store, KEY, 0, spent())
    with pytest.raises(ConflictError):
        await spend(store, KEY, 0, spent(), marks=(mark("usd"),))
    assert await store.meter(TODAY, "telegram", "7") == Meter(day=TODAY, person=CALL, service=CALL)


async def test_a_month_is_the_sum_of_its_days(store: Store) -> None:
    days = [TODAY.replace(day=day) for day in (1, 2, 5)]
    await spend(store, KEY, 0, *(spent(day=day) for day in days))
    await spend(store, KEY, 1, spent(person="8"), spent(day=date(2026, 4, 30)))
    first = TODAY.replace(day=1)
    assert (await store.spent("telegram", "7", first, TODAY)).total == 3 * CALL.total
    assert await store.spent("telegram", "7", first, first) == CALL


async def test_who_spent_most_comes_first(store: Store) -> None:
    costs = {"a": 0.1, "b": 0.3, "c": 0.0, "d": 0.2}
    made = [spent(Usage(9, 0, cost), person) for person, cost in costs.items()]
    await spend(store, KEY, 0, *made, spent(Usage(20, 0), "e"), spent(CALL, "y", YESTERDAY))
    found = await store.spent_most(TODAY)
    assert [one.person for one in found] == ["b", "d", "a", "e", "c"]
    assert found[0] == spent(Usage(9, 0, 0.3), "b")
    assert await store.spent_most(TODAY, 1) == found[:1]


async def test_all_that_was_ever_spent_is_told_by_platform(store: Store) -> None:
    await spend(store, KEY, 0, spent(), spent(day=YESTERDAY), spent(person="8"))
    await spend(store, SLACK, 0, spent(platform="slack"))
    assert await store.spent_in_all() == {"slack": CALL, "telegram": Usage(300, 30, 0.3, 120)}


async def test_a_mark_holds_for_its_person_or_for_all_and_for_its_day(store: Store) -> None:
    marks = (mark("usd"), mark("lifted", "8"), mark("all_lifted", "", ""))
    await store.commit(commit(KEY, 0, said(), marks=marks))
    await store.commit(commit(OTHER, 0, said(), marks=(mark("usd"),)))
    assert (await store.meter(TODAY, "telegram", "7")).marks == {"usd", "all_lifted"}
    assert (await store.meter(TODAY, "telegram", "8")).marks == {"lifted", "all_lifted"}
    assert (await store.meter(TODAY, "slack", "7")).marks == {"all_lifted"}
    assert (await store.meter(YESTERDAY, "telegram", "7")).marks == frozenset()


async def test_a_session_that_is_set_aside_has_cost_what_it_cost(store: Store) -> None:
    await spend(store, KEY, 0, spent(), inbox=update(1), owed=1)
    await put_aside(store, KEY, at(5))
    assert (await store.meter(TODAY, "telegram", "7")).person == CALL


async def test_what_no_model_can_cost_does_not_break_the_sums(store: Store) -> None:
    odd = "7\0\ud800"
    for seq in range(3):
        await spend(store, KEY, seq, spent(Usage(10**30, 10**30, 1e300, 10**30), odd))
    meter = await store.meter(TODAY, "telegram", odd)
    assert meter.person.cost == 3e6
    assert meter.person.prompt == 3 * 10**9


async def test_many_at_once_lose_nothing(store: Store) -> None:
    keys = [f"agent:main:telegram:dm:{number}" for number in range(20)]
    await asyncio.gather(*(spend(store, key, 0, spent(), spent(person=key)) for key in keys))
    meter = await store.meter(TODAY, "telegram", "7")
    assert meter.person.cost == pytest.approx(2.0)
    assert meter.service.total == 40 * CALL.total
