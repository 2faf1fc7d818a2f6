"""The page at the address of a service, as everyone sees it who knows it."""

from typing import cast

import httpx

from bots.app import Service
from bots.front import View, page
from bots.platforms import Health
from core.domain.messages import ModelFailure
from core.ports import Store
from core.runtime.access import CLAIM_FACT
from tests.bots.life import FaultyStore, House

OPEN = Health(
    ok=True,
    detail="open",
    name="@room_bot",
    link="https://room.example/room_bot",
    start_link="https://room.example/room_bot?start=",
)


async def shown(service: Service) -> httpx.Response:
    transport = httpx.ASGITransport(service.server().config.app)  # pyright: ignore[reportArgumentType]
    async with httpx.AsyncClient(transport=transport, base_url="http://bot.example") as client:
        return await client.get("/")


async def test_the_code_is_on_the_page_until_it_is_used_and_never_after() -> None:
    house = House(allowed_users=())
    house.room.health = OPEN
    async with house.lives() as service:
        code = await house.store.fact(CLAIM_FACT) or ""
        assert len(code) == 20
        before = (await shown(service)).text
        await house.room.hears(f"/start {code}")
        after = (await shown(service)).text
    async with house.lives() as service:
        later = (await shown(service)).text
    assert f"<code>/start {code}</code>" in before
    assert f'href="https://room.example/room_bot?start={code}"' in before
    for text in (after, later):
        assert code not in text
        assert "/start" not in text
        assert "This bot has an owner." in text


async def test_an_owner_who_is_one_no_more_leaves_a_page_with_the_new_code() -> None:
    house = House(allowed_users=())
    async with house.lives() as service:
        await house.room.hears(f"/start {await house.store.fact(CLAIM_FACT)}")
        await house.store.disown({CLAIM_FACT: "fresh0"})
        assert "<code>/start fresh0</code>" in (await shown(service)).text


async def test_with_the_operators_own_list_the_code_is_in_the_log_alone() -> None:
    house = House(allowed_users=("room:7",))
    async with house.lives() as service:
        code = await house.store.fact(CLAIM_FACT) or ""
        text = (await shown(service)).text
    assert code
    assert code not in text
    assert "The log has the code" in text


async def test_without_its_database_it_is_shown_all_the_same() -> None:
    house = House(allowed_users=())
    store = FaultyStore()
    house.store = cast("Store", store)
    async with house.lives() as service:
        code = await store.fact(CLAIM_FACT)
        store.broken = {"grants"}
        answer = await shown(service)
        store.broken = set()
    assert answer.status_code == 200
    assert "The database does not say" in answer.text
    assert code not in answer.text


async def test_it_says_what_runs_and_where_to_talk_and_what_is_wrong() -> None:
    house = House(ModelFailure(kind="never", detail="401 secret", remedy="Set A_KEY."))
    house.room.health = OPEN
    async with house.lives() as service:
        await house.room.hears("hello")
        await house.room.sees("cannot be used")
        text = (await shown(service)).text
    assert "Stillhere is running" in text
    assert (
        '<a href="https://room.example/room_bot" rel="noreferrer">@room_bot</a>, connected' in text
    )
    assert "scripted. Set A_KEY." in text
    assert "secret" not in text


async def test_it_is_not_to_be_kept_found_or_told_on_and_loads_nothing() -> None:
    house = House(allowed_users=())
    async with house.lives() as service:
        answer = await shown(service)
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-store"
    assert "noindex" in answer.headers["x-robots-tag"]
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "src=" not in answer.text
    assert "<link" not in answer.text


def test_what_comes_from_elsewhere_cannot_be_markup() -> None:
    evil = '"><script>alert(1)</script>'
    health = Health(ok=False, detail=evil, name=evil, link=evil, start_link=evil)
    text = page(
        View(state=evil, platforms={evil: health}, model=evil, trouble=evil, owned=False, code=evil)
    )
    assert "<script" not in text
    assert '""' not in text
