"""The composition root: what comes before what at a start and a stop, and who is told of it."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from bots.app import Service
from bots.platforms import Adapter, Health, Platform, Site, Variable
from core.domain.fold import fold
from core.domain.ledger import Ledger, owed
from core.domain.messages import ModelFailure
from core.domain.state import SessionState
from core.errors import BrokenDataError, ConfigurationError, IllegalEventError, StorageError
from core.models.litellm import LiteLLMModel, Options
from core.ports import Commit, InboxId, Store
from tests.bots.life import KEY, FaultyStore, House, eventually, until


async def test_a_message_is_answered() -> None:
    house = House("hello yourself")
    async with house.lives():
        await house.room.hears("hello")
        await house.room.sees("hello yourself")
    assert await house.outcomes() == {"answered": 1}


async def test_a_turns_lines_in_the_log_name_its_session_and_number() -> None:
    house = House(ModelFailure(kind="never", detail="no such model"))
    with capture_logs(processors=[merge_contextvars]) as lines:
        async with house.lives():
            await house.room.hears("hello")
            await house.room.sees("The model cannot be used")
    line = next(line for line in lines if line["event"] == "model failed")
    assert (line["key"], line["turn"]) == (KEY, 1)
    assert [line["session"]] == await house.sessions()


async def test_an_open_turn_is_taken_up_before_any_message_is_taken() -> None:
    house = House(drain_seconds=0)
    house.script.hold()
    async with house.lives():
        await house.room.hears("hello")
        await until(lambda: len(house.script.requests) == 1)
    house.script.then("hello again")
    house.script.release()
    steps = house.room.steps = []
    house.store = cast("Store", FaultyStore(house.store, steps))
    async with house.lives():
        await house.room.sees("hello again")
    assert "start, 0 said" in steps
    assert steps.index("commit") < steps.index("start, 0 said")
    assert await house.outcomes() == {"answered": 1}


async def test_a_turn_that_ends_within_the_drain_is_answered() -> None:
    house = House(drain_seconds=5)
    script = house.script
    script.hold()
    service = Service(house.ground)
    await service.start()
    await house.room.hears("hello")
    await until(lambda: len(script.requests) == 1)
    stopping = asyncio.create_task(service.stop())
    await until(lambda: "stop" in house.room.steps)
    script.then("just in time")
    script.release()
    await stopping
    assert house.room.said == ["just in time"]
    assert house.room.steps == ["start, 0 said", "stop", "close"]


async def test_a_longer_turn_is_stored_and_goes_on_at_the_next_start() -> None:
    house = House(drain_seconds=0.1)
    script = house.script
    script.hold()
    async with house.lives():
        await house.room.hears("hello")
        await until(lambda: len(script.requests) == 1)
    assert await house.outcomes() == {"pending": 1}
    script.then("later")
    script.release()
    async with house.lives():
        await house.room.sees("later")
    assert house.room.said == ["later"]
    assert await house.outcomes() == {"answered": 1}


async def test_what_waits_behind_a_draining_turn_is_answered_by_the_next_start() -> None:
    house = House(drain_seconds=5)
    script = house.script
    script.hold()
    service = Service(house.ground)
    await service.start()
    await house.room.hears("one")
    await until(lambda: len(script.requests) == 1)
    await house.room.hears("two")
    stopping = asyncio.create_task(service.stop())
    await until(lambda: "stop" in house.room.steps)
    script.then("first", "second")
    script.release()
    await stopping
    assert house.room.said == ["first"]
    async with house.lives():
        await house.room.sees("second")
    assert house.room.said == ["first", "second"]


async def test_stopping_twice_does_no_harm() -> None:
    house = House("fine")
    service = Service(house.ground)
    await service.start()
    await house.room.hears("hello")
    await house.room.sees("fine")
    await service.stop()
    await service.stop()
    async with house.lives():
        pass
    assert house.room.said == ["fine"]


async def test_a_start_that_fails_can_be_stopped_and_tried_again() -> None:
    house = House("fine")
    house.room.start_fault = RuntimeError("no door")
    service = Service(house.ground)
    with pytest.raises(RuntimeError, match="no door"):
        await service.start()
    await service.stop()
    house.room.start_fault = None
    async with house.lives():
        await house.room.hears("hello")
        await house.room.sees("fine")


async def test_the_clocks_jobs_survive_a_database_that_fails_for_a_while() -> None:
    house = House("sleep well", idle_reset_minutes=10)
    store = FaultyStore()
    house.store = cast("Store", store)
    async with house.lives():
        await house.room.hears("good night")
        await house.room.sees("sleep well")
        house.clock.passes(minutes=11)
        store.broken = {"due", "abandoned", "renew", "claim"}
        with capture_logs() as lines:
            await until(lambda: any(line["event"] == "timers not read" for line in lines))
        store.broken = set()
        await eventually(lambda: closed(house))


@pytest.mark.parametrize(
    "error", [BrokenDataError("gap"), IllegalEventError("bug"), TypeError("x")]
)
async def test_what_is_due_fires_though_another_session_is_broken(error: Exception) -> None:
    house = House("one", "two", idle_reset_minutes=10)
    async with house.lives():
        await house.room.hears("hello", user="6")
        await house.room.sees("one")
        await house.room.hears("hello", user="7")
        await house.room.sees("two")
    store = FaultyStore(house.store)
    store.unsound["agent:main:room:dm:6"] = error
    house.store = cast("Store", store)
    house.clock.passes(minutes=11)
    async with house.lives():
        await eventually(lambda: closed(house))


async def closed(house: House) -> bool:
    return (await house.events())[-1] == "SessionClosed"


async def test_the_claim_code_is_the_same_until_someone_used_it() -> None:
    house = House(allowed_users=())

    def codes(lines: Sequence[Mapping[str, Any]]) -> list[str]:
        return [line["event"].split()[-1] for line in lines if "Nobody owns" in line["event"]]

    with capture_logs() as lines:
        async with house.lives():
            pass
        async with house.lives():
            await house.room.hears("hello")
            await house.room.sees("private assistant")
            code = codes(lines)[-1]
            await house.room.hears(f"/start {code}")
            await house.room.sees("You are my owner now")
            await house.room.hears(f"/start {code}", user="8")
            await house.room.sees("private assistant", times=2)
        async with house.lives():
            pass
    told = codes(lines)
    assert len(told) == 2
    assert len(set(told)) == 1
    assert len(told[0]) == 20


async def test_readiness_follows_the_life_of_the_service() -> None:
    house = House()
    service = Service(house.ground)
    ready, detail = await service.status.readiness()
    assert (ready, detail["state"]) == (False, "starting")
    await service.start()
    ready, detail = await service.status.readiness()
    assert (ready, detail["state"], detail["database"]) == (True, "running", "ok")
    assert detail["platforms"]["room"] == msgspec.to_builtins(house.room.health)
    await service.stop()
    ready, detail = await service.status.readiness()
    assert (ready, detail["state"]) == (False, "stopping")


async def test_it_is_not_ready_while_a_platform_is_not() -> None:
    house = House()
    async with house.lives() as service:
        house.room.health = Health(ok=False, detail="the door is shut; open it")
        ready, detail = await service.status.readiness()
    assert ready is False
    assert detail["platforms"]["room"]["detail"] == "the door is shut; open it"


async def test_it_is_not_ready_while_the_database_cannot_be_written_and_is_again_after() -> None:
    house = House()
    store = FaultyStore()
    house.store = cast("Store", store)
    async with house.lives() as service:
        store.broken = {"set_fact"}
        ready, detail = await service.status.readiness()
        assert (ready, detail["database"]) == (False, "cannot be written: disk full")
        store.broken = set()
        assert (await service.status.readiness())[0] is True


async def test_a_database_that_does_not_answer_does_not_hang_the_health_check() -> None:
    house = House()
    store = FaultyStore()
    house.store = cast("Store", store)
    async with house.lives() as service:
        store.hanging = {"set_fact"}
        ready, detail = await service.status.readiness()
        store.hanging = set()
    assert (ready, "no answer" in detail["database"]) == (False, True)


async def forgets(house: House) -> None:
    """What a bug would do: a session goes on without a message that was queued in it."""
    stored = await house.store.load(KEY)
    state = fold(stored.snapshot or SessionState(key=KEY), stored.log)
    assert len(state.queue) == 1
    poorer = replace(state, queue=())
    await house.store.commit(
        Commit(
            key=KEY,
            expected_seq=state.seq,
            at=house.clock.now(),
            log=(),
            open_turn=True,
            owed=owed(poorer),
            snapshot=poorer,
        )
    )


async def test_a_message_that_a_session_forgot_is_an_alarm_and_no_reason_to_restart() -> None:
    house = House("fine")
    script = house.script
    async with house.lives() as service:
        script.hold()
        await house.room.hears("one")
        await until(lambda: len(script.requests) == 1)
        await house.room.hears("two")
        ready, detail = await service.status.readiness()
        numbers = {"accepted": 2, "answered": 0, "failed": 0, "discarded": 0}
        assert detail["ledger"] == {"room": {**numbers, "pending": 2, "balanced": True}}
        assert detail["alarms"] == []
        await forgets(house)
        with capture_logs() as lines:
            ready, detail = await service.status.readiness()
        assert detail["ledger"] == {"room": {**numbers, "pending": 1, "balanced": False}}
        assert detail["alarms"] == ["room: UNEQUAL: 1 message is accounted for by nobody"]
        assert ready is True
        assert [line["log_level"] for line in lines if "accounted" in line["event"]] == ["error"]
        script.release()


async def test_an_alarm_is_said_at_the_start() -> None:
    house = House()
    await house.store.commit(
        Commit(
            key=KEY, expected_seq=0, at=house.clock.now(), log=(), inbox=InboxId("room", "b", "1")
        )
    )
    with capture_logs() as lines:
        async with house.lives():
            pass
    (line,) = [line for line in lines if line["log_level"] == "error"]
    assert (line["platform"], line["missing"]) == ("room", 1)


async def test_a_scrape_is_told_what_is_in_the_database() -> None:
    house = House("hello yourself")
    async with house.lives() as service:
        await house.room.hears("hello")
        await house.room.sees("hello yourself")
        reading = await service.status.reading()
    assert reading.ready is True
    assert reading.kept
    assert reading.kept.ledger == {"room": Ledger(accepted=1, answered=1)}


async def test_a_scrape_reads_the_ledger_once() -> None:
    house = House()
    journal: list[str] = []
    house.store = cast("Store", FaultyStore(journal=journal))
    async with house.lives() as service:
        before = journal.count("ledger")
        await service.status.reading()
        assert journal.count("ledger") == before + 1


@pytest.mark.parametrize("error", [StorageError("away"), BrokenDataError("owes"), TypeError("x")])
async def test_a_ledger_that_cannot_be_read_keeps_nobody_from_an_answer(error: Exception) -> None:
    house = House("hello yourself")
    store = FaultyStore()
    house.store = cast("Store", store)
    store.errors["ledger"] = error
    async with house.lives() as service:
        await house.room.hears("hello")
        await house.room.sees("hello yourself")
        ready, detail = await service.status.readiness()
        assert ready, detail


async def test_one_session_that_breaks_off_unheard_of_stops_no_other_at_a_start() -> None:
    house = House(*["hello yourself"] * 4)
    house.script.hold()
    async with house.lives():
        for user in ("6", "7"):
            await house.room.hears("hello", user=user)
        await until(lambda: len(house.script.requests) == 2)
    house.script.release()
    store = FaultyStore(house.store)
    store.unsound["agent:main:room:dm:6"] = TypeError("nobody thought of this")
    house.store = cast("Store", store)
    async with house.lives() as service:
        await house.room.sees("hello yourself")
        ready, detail = await service.status.readiness()
        assert ready, detail


@pytest.mark.parametrize("how", ["broken", "hanging"])
async def test_a_scrape_ends_soon_while_the_database_is_away(how: str) -> None:
    house = House()
    store = FaultyStore()
    house.store = cast("Store", store)
    async with house.lives() as service:
        setattr(store, how, {"set_fact", "ledger", "undelivered"})
        reading = await service.status.reading()
        setattr(store, how, set())
    assert (reading.ready, reading.kept) == (False, None)
    assert reading.health == {"room": house.room.health}


class Unloadable(LiteLLMModel):
    async def load(self) -> None:
        raise ImportError("no such library")


async def test_a_model_that_cannot_be_loaded_is_said_and_does_not_stop_the_start() -> None:
    house = House()
    model = Unloadable(Options(name="openai/x"), house.clock.sleep, random.Random(1))
    service = Service(replace(house.ground, model=model))
    with capture_logs() as lines:
        await service.start()
        await until(lambda: any("cannot be loaded" in line["event"] for line in lines))
        await house.room.hears("/status")
        await house.room.sees("openai/x")
        await service.stop()


async def test_the_last_sign_of_life_is_kept_for_the_doctor() -> None:
    house = House()
    house.room.health = Health(ok=True, detail="open", last_sign=house.clock.now())
    async with house.lives():
        pass
    noted = await house.store.fact("signs of room")
    assert msgspec.json.decode(noted or "", type=Health) == house.room.health


async def test_demo_tools_are_the_demo_models_only() -> None:
    house = House("I cannot count")
    service = Service(replace(house.ground, tools=None))
    await service.start()
    await house.room.hears("count")
    await house.room.sees("I cannot count")
    await service.stop()
    offered = [tool.name for tool in house.script.requests[0].tools]
    assert offered == ["now", "read_result", "remind_me"]


def built(**builds: Callable[[Mapping[str, str], Site], Adapter | None]) -> Service:
    platforms = {
        name: Platform(name=name, variables=(Variable(name=f"{name}_TOKEN", help=""),), build=build)
        for name, build in builds.items()
    }
    return Service(replace(House().ground, platforms=platforms))


def test_every_fault_of_every_platform_is_told() -> None:
    def one(values: Mapping[str, str], site: Site) -> Adapter | None:
        raise ConfigurationError("A is wrong\nB is wrong")

    def two(values: Mapping[str, str], site: Site) -> Adapter | None:
        raise ConfigurationError("C is wrong")

    with pytest.raises(ConfigurationError, match=r"^A is wrong\nB is wrong\nC is wrong$"):
        built(one=one, two=two)


def test_without_a_platform_it_says_what_to_set() -> None:
    with pytest.raises(ConfigurationError, match=r"set X_TOKEN .* `stillhere chat`"):
        built(X=lambda values, site: None)
