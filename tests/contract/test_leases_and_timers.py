"""What every store promises of leases, timers, access and facts."""

import asyncio

import pytest

from core.errors import ConflictError, LeaseLostError
from core.ports import AccessGrant, Store, Timer
from tests.contract.values import KEY, OTHER, at, commit, lease, said


async def test_a_turn_is_abandoned_when_its_lease_is_over(store: Store) -> None:
    await store.commit(commit("a", 0, said(), open_turn=True, lease=lease(until=30)))
    await store.commit(commit("b", 0, said(), open_turn=True, lease=lease(until=20)))
    await store.commit(commit("c", 0, said(), open_turn=True))
    await store.commit(commit("d", 0, said(), lease=lease(until=20)))
    assert await store.abandoned(at(19.9)) == ("c",)
    assert await store.abandoned(at(20)) == ("c", "b")
    assert await store.abandoned(at(30)) == ("c", "b", "a")
    assert await store.abandoned(at(30), limit=2) == ("c", "b")


async def test_a_lease_stays_until_the_turn_is_over(store: Store) -> None:
    await store.commit(commit(KEY, 0, said(), open_turn=True, lease=lease("here", 30)))
    await store.commit(commit(KEY, 1, said(), open_turn=True))
    assert await store.abandoned(at(29)) == ()
    with pytest.raises(LeaseLostError):
        await store.commit(commit(KEY, 2, said(), open_turn=True, lease=lease("there")))
    await store.commit(commit(KEY, 2, said(), open_turn=True, lease=lease("here", 60)))
    assert await store.abandoned(at(59)) == ()
    await store.commit(commit(KEY, 3, said(), open_turn=False))
    await store.commit(commit(KEY, 4, said(), open_turn=True, lease=lease("there")))


async def test_a_lease_that_is_over_can_be_taken(store: Store) -> None:
    await store.commit(commit(KEY, 0, said(), open_turn=True, lease=lease("here", 30)))
    taken = lease("there", 90)
    with pytest.raises(LeaseLostError):
        await store.commit(commit(KEY, 1, said(), open_turn=True, lease=taken, at=at(29.9)))
    await store.commit(commit(KEY, 1, said(), open_turn=True, lease=taken, at=at(30)))
    with pytest.raises(LeaseLostError):
        await store.commit(commit(KEY, 2, said(), open_turn=True, lease=lease("here"), at=at(40)))


async def test_only_leases_that_are_held_are_renewed(store: Store) -> None:
    await store.commit(commit("a", 0, said(), open_turn=True, lease=lease("here", 30)))
    await store.commit(commit("b", 0, said(), open_turn=True, lease=lease("there", 30)))
    await store.commit(commit("c", 0, said(), open_turn=True))
    renewed = await store.renew(("a", "b", "c", "d"), lease("here", 60))
    assert renewed == {"a": 1}
    assert await store.abandoned(at(30)) == ("c", "b")
    assert await store.renew((), lease("here", 60)) == {}


async def test_a_lease_that_was_let_go_is_not_renewed(store: Store) -> None:
    await store.commit(commit(KEY, 0, said(), open_turn=True, lease=lease("here", 30)))
    await store.commit(commit(KEY, 1, said(), open_turn=False))
    assert await store.renew((KEY,), lease("here", 60)) == {}


def timer(name: str, due: float) -> Timer:
    return Timer(id=name, key=OTHER, kind="reminder", due=at(due), data="{}")


async def test_timers_are_due_in_order_and_stay_until_they_are_moved_or_cleared(
    store: Store,
) -> None:
    await store.commit(commit(KEY, 0, said(), timers=(timer("a", 3), timer("b", 1), timer("c", 2))))
    assert await store.due(at(0.9)) == ()
    assert await store.due(at(1)) == (timer("b", 1),)
    assert [one.id for one in await store.due(at(9))] == ["b", "c", "a"]
    assert [one.id for one in await store.due(at(9), limit=2)] == ["b", "c"]
    await store.commit(commit(KEY, 1, said(), timers=(timer("b", 5),), cleared=("c", "unknown")))
    assert await store.due(at(9)) == (timer("a", 3), timer("b", 5))
    await store.clear(timer("a", 99))
    assert await store.due(at(9)) == (timer("a", 3), timer("b", 5))
    await store.clear(timer("a", 3))
    await store.clear(timer("a", 3))
    assert await store.due(at(9)) == (timer("b", 5),)


async def test_there_is_one_owner_until_that_one_steps_down(store: Store) -> None:
    ann, bob = ("telegram", "7"), ("console", "bob")
    await store.commit(commit("a", 0, said(), access=(AccessGrant(*ann, "owner"),)))
    await store.commit(commit("a", 1, said(), access=(AccessGrant(*ann, "owner"),)))
    with pytest.raises(ConflictError):
        await store.commit(commit("b", 0, said(), access=(AccessGrant(*bob, "owner"),)))
    await store.commit(commit("b", 0, said(), access=(AccessGrant(*bob, "denied"),)))
    handed_over = (AccessGrant(*ann, "allowed"), AccessGrant(*bob, "owner"))
    await store.commit(commit("b", 1, said(), access=handed_over))
    assert await store.grants() == (handed_over[1], handed_over[0])
    assert await store.role(*ann) == "allowed"
    assert await store.role("slack", "7") is None


async def test_of_two_who_claim_to_be_the_owner_at_once_one_is(store: Store) -> None:
    results = await asyncio.gather(
        *(
            store.commit(commit(f"k{n}", 0, said(), access=(AccessGrant("t", str(n), "owner"),)))
            for n in range(5)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(result, int) for result in results) == 1
    assert len(await store.grants()) == 1


async def test_facts_can_be_changed(store: Store) -> None:
    assert await store.fact("code") is None
    await store.set_fact("code", "one")
    await store.set_fact("code", "two")
    assert await store.fact("code") == "two"
    for name in ("a%b", "a%", "aXb", "A%b"):
        await store.set_fact(name, name)
    assert await store.facts("a%") == {"a%b": "a%b", "a%": "a%"}
    assert await store.facts("b") == {}


async def test_a_process_sees_only_the_sessions_of_its_platforms(store: Store) -> None:
    here, elsewhere = frozenset({"telegram"}), frozenset({"console"})
    await store.commit(commit(OTHER, 0, said(), timers=(timer("a", 0),), open_turn=True))
    assert await store.due(at(9), platforms=elsewhere) == ()
    assert await store.abandoned(at(9), platforms=elsewhere) == ()
    assert await store.due(at(9), platforms=here) == (timer("a", 0),)
    assert await store.abandoned(at(9), platforms=here) == (OTHER,)


async def test_the_first_to_state_a_fact_states_it_for_all(store: Store) -> None:
    told = await asyncio.gather(*(store.first_fact("code", f"c{n}") for n in range(5)))
    assert len(set(told)) == 1
    assert await store.fact("code") == told[0]
    await store.set_fact("code", "another")
    assert await store.first_fact("code", "mine") == "another"
