"""What the owner is told in their chat of how the service is set up: once, whoever dies then."""

import asyncio
from typing import cast

import pytest
from msgspec.structs import replace

from bots.app import Service
from bots.platforms import Health
from core.domain.keys import Address
from core.domain.messages import ModelFailure
from core.errors import StorageError
from core.ports import Store
from core.runtime.access import CLAIM_FACT
from tests.bots.life import FaultyStore, House, until

REPORT = "This is how I am set up"
REMEDY = "room refuses the key in ROOM_API_KEY: set a valid one and start me again."
BAD_KEY = ModelFailure(kind="never", detail="401", remedy=REMEDY)
GENERAL = "The model cannot be used as it is set up; whoever runs me finds the reason in the log."


async def claims(house: House, user: str = "7") -> None:
    await house.room.hears(f"/start {await house.store.fact(CLAIM_FACT)}", user=user)


def reports(house: House) -> list[str]:
    return [text for text in house.room.said if REPORT in text]


async def a_start_that_says_nothing(house: House) -> None:
    """Whatever is promised is sent before the stop; the first look of the report is over then."""
    async with house.lives():
        await house.room.hears("/help")
        await house.room.sees("/undo")


async def test_the_owner_is_told_once_what_is_there_and_what_is_not() -> None:
    house = House(allowed_users=())
    async with house.lives():
        await claims(house)
        await house.room.sees(REPORT)
    told = house.room.said[-1]
    assert house.room.said[0].startswith("Hello!")
    assert "- Room: connected." in told
    assert "- Model: scripted." in told
    assert "- Database: one SQLite file" in told
    assert "- People: you and whom you `/allow`." in told
    assert told.endswith("Nothing is missing.")
    await a_start_that_says_nothing(house)
    await a_start_that_says_nothing(house)
    assert len(reports(house)) == 1


async def test_without_a_key_the_owner_is_told_what_to_set() -> None:
    house = House(allowed_users=())
    service = Service(replace(house.ground, model=None))
    await service.start()
    await claims(house)
    told = await house.room.sees(REPORT)
    await service.stop()
    assert "there is no key of a vendor, so it is the built-in demo model." in told
    assert "1. Model: Set the key of a vendor, such as OPENAI_API_KEY." in told


async def test_a_disk_that_is_thrown_away_is_said() -> None:
    house = House(allowed_users=())
    service = Service(replace(house.ground, environment={"DYNO": "web.1"}))
    await service.start()
    await claims(house)
    assert "1. Database: Heroku throws that away" in await house.room.sees(REPORT)
    await service.stop()


async def test_what_has_changed_at_a_later_start_is_told_and_so_is_its_end() -> None:
    house = House(allowed_users=())
    async with house.lives():
        await claims(house)
        await house.room.sees(REPORT)
    well = house.room.health
    house.room.health = Health(ok=False, lasting=True, detail="the door is walled up; set ROOM")
    for _ in range(2):
        async with house.lives():
            await house.room.sees("1. Room: the door is walled up; set ROOM.")
            await house.room.hears("/help")
            await house.room.sees("/undo")
    assert len(reports(house)) == 2
    house.room.health = well
    async with house.lives():
        await until(lambda: len(reports(house)) == 3)
    assert reports(house)[-1].endswith("Nothing is missing.")


async def test_what_passes_by_itself_is_no_change() -> None:
    house = House(allowed_users=())
    async with house.lives():
        await claims(house)
        await house.room.sees(REPORT)
    house.room.health = Health(ok=False, detail="out of reach; trying on")
    await a_start_that_says_nothing(house)
    assert len(reports(house)) == 1


async def test_of_two_processes_that_start_at_once_one_tells() -> None:
    house = House(allowed_users=())
    house.room.intake = ""
    async with house.lives():
        await claims(house)
        await house.room.sees(REPORT)
    store = FaultyStore(house.store)
    house.store = cast("Store", store)
    house.room.health = Health(ok=False, lasting=True, detail="walled up")
    async with house.lives(), house.lives():
        await until(lambda: store.journal.count("promise") == 2)
        await house.room.sees("walled up")
        await a_word(house)
    assert len(reports(house)) == 2


async def test_who_took_over_tells_what_it_found_then() -> None:
    house = House(allowed_users=())
    first = Service(house.ground)
    await first.start()
    await claims(house)
    await house.room.sees(REPORT)
    second = Service(house.ground)
    await second.start()
    house.room.health = Health(ok=False, lasting=True, detail="walled up")
    await first.stop()
    await house.room.sees("walled up")
    await second.stop()
    assert len(reports(house)) == 2


async def killed(service: Service) -> None:
    """Nothing of it does anything more, and nothing is written on its way out."""
    tasks = {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert service.status.life == "running"


async def test_a_kill_before_it_is_promised_loses_it_not() -> None:
    house = House(allowed_users=())
    real = house.store
    store = FaultyStore(real)
    house.store = cast("Store", store)
    store.hanging = {"promise"}
    service = Service(house.ground)
    await service.start()
    await claims(house)
    await house.room.sees("You are my owner now")
    await killed(service)
    assert reports(house) == []
    house.store = real
    async with house.lives():
        await house.room.sees(REPORT)
    await a_start_that_says_nothing(house)
    assert len(reports(house)) == 1


async def test_a_kill_after_it_is_promised_neither_loses_nor_doubles_it() -> None:
    house = House(allowed_users=())
    real = house.store
    store = FaultyStore(real)
    house.store = cast("Store", store)
    async with house.lives():
        await house.room.hears("hello")
        await house.room.sees("private assistant")
        service = Service(house.ground)
    store.hanging = {"claim"}
    await service.start()
    await claims(house)
    await until(lambda: "promise" in store.journal)
    await killed(service)
    assert reports(house) == []
    house.store = real
    async with house.lives():
        await house.room.sees(REPORT)
    await a_start_that_says_nothing(house)
    assert len(reports(house)) == 1


async def test_a_claim_whose_place_was_not_stored_is_brought_again_and_told() -> None:
    house = House(allowed_users=())
    store = FaultyStore()
    house.store = cast("Store", store)
    async with house.lives():
        code = await store.fact(CLAIM_FACT)
        store.broken = {"set_fact"}
        with pytest.raises(StorageError):
            await house.room.hears_again(90, f"/start {code}")
        store.broken = set()
        await house.room.hears_again(90, f"/start {code}")
        await house.room.sees(REPORT)
    assert sum("You are my owner now" in text for text in house.room.said) == 1


async def test_the_next_owner_is_told_too() -> None:
    house = House(allowed_users=())
    async with house.lives():
        await claims(house)
        await house.room.sees(REPORT)
        await house.store.disown({CLAIM_FACT: "fresh", "owner's chat": ""})
        await claims(house, user="8")
        await until(lambda: len(reports(house)) == 2)


async def test_a_model_that_refuses_its_key_is_told_to_each_in_their_way() -> None:
    house = House(BAD_KEY, BAD_KEY, BAD_KEY, allowed_users=("room:8", "room:9"))
    async with house.lives():
        await claims(house)
        await house.room.sees(REPORT)
        await house.room.hears("hello", user="8")
        to_guest = await house.room.sees("cannot be used")
        to_owner = await house.room.sees(REMEDY)
        await house.room.hears("hello", user="9")
        await house.room.sees("cannot be used", times=2)
        before = len(house.room.said)
        await house.room.hears("hello")
        await until(lambda: len(house.room.said) > before)
        answer = house.room.said[-1]
    assert to_guest.startswith(GENERAL)
    assert "ROOM_API_KEY" not in to_guest
    assert to_owner == f"I cannot answer: {REMEDY}"
    assert answer.startswith(f"{REMEDY} When it is mended, /retry answers your message. (error ")
    assert len(reports(house)) == 1


async def test_in_a_group_nobody_is_told_the_remedy() -> None:
    house = House(BAD_KEY, allowed_users=())
    async with house.lives():
        await claims(house)
        await house.room.sees(REPORT)
        group = Address(platform="room", account="bot", chat="5", chat_type="group")
        await house.room.hears("hello", address=group)
        said = await house.room.sees("cannot be used")
    assert "ROOM_API_KEY" not in said


async def test_who_asked_and_was_told_is_not_told_again_and_others_refusals_are_told_once() -> None:
    house = House(BAD_KEY, BAD_KEY, allowed_users=("room:8",))
    async with house.lives():
        await claims(house)
        await house.room.sees(REPORT)
        await house.room.hears("hello")
        await house.room.sees(REMEDY)
        await house.room.hears("hello", user="8")
        await house.room.sees("cannot be used")
    house.script.then(BAD_KEY)
    async with house.lives() as service:
        await house.room.hears("hello", user="8")
        await house.room.sees("cannot be used", times=2)
        ready, detail = await service.status.readiness()
        assert (ready, detail["model"]) == (True, REMEDY)
        await a_word(house)
    assert sum(REMEDY in text for text in house.room.said) == 1
    house.script.then("there you are", BAD_KEY)
    async with house.lives() as service:
        await house.room.hears("hello", user="8")
        await house.room.sees("there you are")
        _, detail = await service.status.readiness()
        assert detail["model"] == "ok"
        await a_word(house)
        await house.room.hears("hello", user="8")
        await house.room.sees(f"I cannot answer: {REMEDY}")


async def a_word(house: House) -> None:
    """Whatever was promised before is said before it."""
    before = len(house.room.said)
    await house.room.hears("/pins")
    await until(lambda: len(house.room.said) > before)
