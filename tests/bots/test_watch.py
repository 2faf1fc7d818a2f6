"""What an operator sees of the work in a scrape, and that whoever watches cannot harm it."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import Any, cast

import httpx
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from bots.app import Service
from bots.watch import Sink, Watch, header_secrets, wants_traces
from core import tools
from core.domain.messages import ModelFailure, ModelReply, ToolCall
from core.errors import PermanentError, StorageError, TransientError
from core.plugins import discover
from core.ports import Lease, Span
from storage.store import SqlStore
from tests.bots.life import HandClock, House, eventually, until

Samples = dict[tuple[str, ...], float]


async def scrape(service: Service) -> Samples:
    """By the metric's name and its labels' values, in the order of the labels' names."""
    transport = httpx.ASGITransport(cast("Any", service.server().config.app))
    async with httpx.AsyncClient(transport=transport, base_url="http://bot") as client:
        return samples((await client.get("/metrics")).text)


def samples(text: str) -> Samples:
    return {
        (
            one.name.removeprefix("stillhere_"),
            *(value for _, value in sorted(one.labels.items())),
        ): (one.value)
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def counted(found: Samples, name: str) -> Samples:
    """The ones of a name that are not 0, by their labels' values."""
    return {key[1:]: number for key, number in found.items() if key[0] == name and number}


async def test_a_turn_with_a_tool_is_counted_and_timed() -> None:
    call = ToolCall("c1", "now", "{}")
    unknown = ToolCall("c2", "ada's secret", "{}")
    house = House(ModelReply(text="", calls=(call, unknown)), "noon", tools=discover(tools, "TOOL"))
    async with house.lives() as service:
        await house.room.hears("what time is it?")
        await house.room.sees("noon")
        await eventually(lambda: sent(service, 1))
        found = await scrape(service)
    assert counted(found, "turn_seconds_count") == {("answered", "room"): 1}
    assert counted(found, "step_seconds_count") == {("replied",): 2}
    assert counted(found, "model_seconds_count") == {("replied", "turn"): 2}
    assert counted(found, "tool_seconds_count") == {("ok", "now"): 1, ("error", "unknown"): 1}
    assert counted(found, "sends_total") == {("sent", "room"): 1}
    assert counted(found, "send_seconds_count") == {("room",): 1}
    assert found["commit_seconds_count",] >= 6
    assert found["open_turns", "thinking"] == 0
    assert found["queue_age_seconds", "room"] == 0
    assert found["process_resident_memory_bytes",] > 0
    for nothing in ("rate_limits_total", "recoveries_total", "lease_losses_total"):
        assert found[nothing, "room"] == 0


async def sent(service: Service, many: int) -> bool:
    return (await scrape(service))["sends_total", "sent", "room"] == many


async def test_what_waits_is_seen_by_its_age_and_its_phase() -> None:
    house = House("at last", "and again")
    house.script.hold()
    async with house.lives() as service:
        await house.room.hears("hello")
        await until(lambda: len(house.script.requests) == 1)
        house.clock.passes(seconds=90)
        await house.room.hears("are you there?")
        house.clock.passes(seconds=10)
        found = await scrape(service)
        assert found["queue_age_seconds", "room"] == 100
        assert found["open_turns", "thinking"] == 1
        house.script.release()
        await house.room.sees("and again")
        found = await scrape(service)
    assert found["queue_age_seconds", "room"] == 0
    assert counted(found, "open_turns") == {}
    assert found["turn_seconds_sum", "answered", "room"] == 100


async def test_a_turn_at_a_rate_limit_waits_and_is_no_ones_work() -> None:
    busy = ModelFailure(kind="try_again", detail="429", retry_after=60)
    house = House(busy, "at last")
    async with house.lives() as service:
        await house.room.hears("hello")
        await until(lambda: bool(house.room.said))
        found = await scrape(service)
        assert counted(found, "open_turns") == {("waiting",): 1}
        assert counted(found, "model_seconds_count") == {("try_again", "turn"): 1}
        house.clock.passes(minutes=5)
        await house.room.sees("at last")


async def test_a_platform_that_says_not_so_fast_is_counted_and_the_answer_comes() -> None:
    house = House("hello yourself")
    house.room.send_faults = [TransientError("429", retry_after=3), TransientError("reset")]
    async with house.lives() as service:
        await house.room.hears("hello")
        await until(lambda: len(house.room.send_faults) == 1)
        house.clock.passes(seconds=4)
        await until(lambda: not house.room.send_faults)
        house.clock.passes(seconds=4)
        await house.room.sees("hello yourself")
        await eventually(lambda: sent(service, 1))
        found = await scrape(service)
    assert found["rate_limits_total", "room"] == 1
    assert counted(found, "sends_total") == {("retried", "room"): 2, ("sent", "room"): 1}


async def test_what_a_platform_never_takes_has_failed() -> None:
    house = House("hello yourself")
    house.room.send_faults = [PermanentError("blocked")]
    async with house.lives() as service:
        await house.room.hears("hello")
        await until(lambda: not house.room.send_faults)
        await eventually(lambda: failed(service))


async def failed(service: Service) -> bool:
    found = await scrape(service)
    return found["sends_total", "failed", "room"] == 1 == found["outbox", "room", "failed"]


async def test_a_model_that_fails_is_counted_by_why() -> None:
    house = House(ModelFailure(kind="never", detail="no such model: ada's"))
    async with house.lives() as service:
        await house.room.hears("hello")
        await house.room.sees("The model cannot be used")
        found = await scrape(service)
    assert counted(found, "model_seconds_count") == {("never", "turn"): 1}
    assert counted(found, "step_seconds_count") == {("never",): 1}
    assert counted(found, "turn_seconds_count") == {("failed", "room"): 1}


async def test_a_turn_that_is_stopped_is_counted() -> None:
    house = House()
    house.script.hold()
    async with house.lives() as service:
        await house.room.hears("hello")
        await until(lambda: len(house.script.requests) == 1)
        await house.room.hears("/stop")
        await house.room.sees("Stopped")
        found = await scrape(service)
    assert counted(found, "turn_seconds_count") == {("cancelled", "room"): 1}
    assert counted(found, "model_seconds_count") == {("CancelledError", "turn"): 1}


async def test_a_turn_that_a_stop_left_is_counted_by_who_takes_it() -> None:
    house = House(drain_seconds=0)
    house.script.hold()
    async with house.lives() as service:
        await house.room.hears("hello")
        await until(lambda: len(house.script.requests) == 1)
        assert (await scrape(service))["handovers_total", "room"] == 0
    house.script.then("hello again")
    house.script.release()
    async with house.lives() as service:
        await house.room.sees("hello again")
        found = await scrape(service)
    assert found["handovers_total", "room"] == 1
    assert found["recoveries_total", "room"] == 0


async def test_a_turn_that_broke_off_is_counted_by_who_takes_it_up_again() -> None:
    house = House()
    house.script.hold()
    hung = Service(replace(house.ground, lease=3600.0))
    await hung.start()
    await house.room.hears("hello")
    await until(lambda: len(house.script.requests) == 1)
    house.clock.passes(hours=2)
    assert (await scrape(hung))["abandoned_turns",] == 1
    async with house.lives() as service:
        await until(lambda: len(house.script.requests) == 2)
        found = await scrape(service)
        house.script.then("nobody hears this", "hello again")
        house.script.release()
        await until(lambda: bool(house.room.said))
    await hung.stop()
    assert found["recoveries_total", "room"] == 1
    assert found["handovers_total", "room"] == 0
    assert found["abandoned_turns",] == 0


async def test_a_bots_messages_that_another_process_takes_are_a_lease_lost() -> None:
    house = House()
    async with house.lives() as service:
        other = Lease("another process", house.clock.now() + timedelta(days=1))
        while not await house.store.take_lease("room 1", other, house.clock.now()):
            house.clock.passes(minutes=1)
        await until(lambda: "stop" in house.room.steps)
        await eventually(lambda: lost(service))


async def lost(service: Service) -> bool:
    return (await scrape(service))["lease_losses_total", "room"] == 1


async def test_what_the_database_refuses_is_counted(sqlite_url: str) -> None:
    watch = Watch(HandClock())
    store = await SqlStore.open(sqlite_url, telemetry=watch)
    await store.set_fact("a", "b")
    before = samples(watch.counters.exposition().decode())
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as beside:
        beside.execute("DROP TABLE facts")
    with pytest.raises(StorageError):
        await store.set_fact("a", "c")
    with pytest.raises(StorageError):
        await store.fact("a")
    await store.close()
    after = samples(watch.counters.exposition().decode())
    assert before["database_errors_total",] == 0
    assert before["database_seconds_count", "write"] == 1
    # A transaction that is refused is tried again by itself.
    assert after["database_errors_total",] == 3
    assert after["database_seconds_count", "read"] == 1


class Thrower:
    """Fails at whatever it is told."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("no room for numbers")


async def test_who_watches_and_fails_harms_nobody_and_is_said_once() -> None:
    house = House("one", "two")
    watch = Watch(house.clock, cast("Sink", Thrower()))
    service = Service(replace(house.ground, watch=watch))
    with capture_logs() as lines:
        await service.start()
        for said in ("one", "two"):
            await house.room.hears("hello")
            await house.room.sees(said)
        found = await scrape(service)
        await service.stop()
    assert counted(found, "turn_seconds_count") == {("answered", "room"): 2}
    assert [line["event"] for line in lines if "said once" in line["event"]] == [
        "not told; this is said once"
    ]
    assert await house.outcomes() == {"answered": 2}


async def test_an_error_of_the_work_is_not_swallowed() -> None:
    watch = Watch(HandClock())
    with pytest.raises(KeyError), watch.span(Span(kind="model")):
        raise KeyError("x")
    found = samples(watch.counters.exposition().decode())
    assert counted(found, "model_seconds_count") == {("KeyError", "turn"): 1}


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "TRUE"}, False),
    ],
)
def test_traces_are_made_where_a_collector_is_set(
    environment: dict[str, str], wanted: bool
) -> None:
    assert wants_traces(environment) is wanted


def test_the_keys_of_a_collector_are_secrets() -> None:
    hidden = header_secrets({"OTEL_EXPORTER_OTLP_HEADERS": "x-key=abc%20def, team=t"})
    assert hidden == {"abc%20def", "abc def", "t"}
