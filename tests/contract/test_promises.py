"""What every store promises of what the service itself says, and of an owner who is one no more."""

import asyncio

import pytest

from core.errors import ConflictError
from core.ports import AccessGrant, Store
from tests.contract.values import KEY, OTHER, at, commit, lease, letter, said

FACT = "told"


async def sent(store: Store) -> list[str]:
    found = await store.claim(at(), lease())
    return [one.message.id for one in found]


async def test_what_is_promised_is_sent_as_any_other(store: Store) -> None:
    assert await store.promise((letter("a"), letter("b", chat="8")), FACT, "one", at())
    assert await store.fact(FACT) == "one"
    assert await sent(store) == ["a", "b"]


async def test_the_same_is_promised_once(store: Store) -> None:
    assert await store.promise((letter("a"),), FACT, "one", at())
    assert not await store.promise((letter("b", chat="8"),), FACT, "one", at())
    assert await store.promise((letter("c", chat="9"),), FACT, "two", at())
    assert await store.promise((letter("d", chat="10"),), FACT, "one", at())
    assert await sent(store) == ["a", "c", "d"]


async def test_of_many_who_promise_the_same_at_once_one_does(store: Store) -> None:
    promises = [
        store.promise((letter(f"a{n}", chat=str(n)),), FACT, "one", at()) for n in range(10)
    ]
    assert sum(await asyncio.gather(*promises)) == 1
    assert len(await sent(store)) == 1


async def test_a_fact_may_change_with_nothing_said(store: Store) -> None:
    assert await store.promise((), FACT, "one", at())
    assert not await store.promise((), FACT, "one", at())
    assert await store.fact(FACT) == "one"


async def test_an_owner_is_one_no_more_and_the_next_one_can_be(store: Store) -> None:
    ada, ben = AccessGrant("telegram", "7", "owner"), AccessGrant("telegram", "8", "owner")
    cem = AccessGrant("telegram", "9", "allowed")
    await store.commit(commit(KEY, 0, said(), access=(ada, cem)))
    with pytest.raises(ConflictError):
        await store.commit(commit(OTHER, 0, said(), access=(ben,)))
    await store.disown({"code": "fresh", "place": ""})
    assert await store.role("telegram", "7") is None
    assert (await store.fact("code"), await store.fact("place")) == ("fresh", "")
    await store.commit(commit(OTHER, 0, said(), access=(ben,)))
    assert await store.grants() == (ben, cem)
