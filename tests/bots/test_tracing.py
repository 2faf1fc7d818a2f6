"""Turns as a collector of traces gets them, over HTTP and by the real SDK."""

import asyncio
from collections import Counter
from collections.abc import Generator

import pytest
from structlog.testing import capture_logs

from bots.tracing import ids_of
from core import tools
from core.domain.keys import TurnId
from core.domain.messages import ModelFailure, ModelReply, ToolCall, Usage
from core.errors import TransientError
from core.plugins import discover
from tests.bots.life import House, until
from tests.standins.collector import Collector, Taken

WORDS = ("what time", "noon", "ada-", "agent:", "secret")
"""What people say, ids of people, messages and calls, keys: none of it is for a collector. None is
so short that it could stand in a random number."""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Generator[Collector]:
    with Collector() as one:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", one.url)
        monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
        yield one


def house(collector: Collector, *lines: object, drain: float = 1) -> House:
    made = House(*lines, tools=discover(tools, "TOOL"), drain_seconds=drain)
    made.environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    return made


def root(spans: list[Taken]) -> Taken:
    (one,) = [span for span in spans if not span.parent]
    return one


async def test_a_turn_is_one_trace_of_its_calls_commits_and_sends(collector: Collector) -> None:
    call = ToolCall("c1", "now", "{}")
    there = house(collector, ModelReply(text="", calls=(call,), usage=Usage(30, 7)), "noon")
    async with there.lives():
        await there.room.hears("what time is it?", user="ada-lovelace")
        await there.room.sees("noon")
    spans = collector.spans
    turn = root(spans)
    assert turn.name == "turn"
    assert {span.trace for span in spans} == {turn.trace}
    assert {span.parent for span in spans} == {"", turn.id}
    names = Counter(span.name for span in spans)
    commits = names.pop("commit")
    assert names == {"turn": 1, "model": 2, "tool": 1, "send": 1}
    assert commits >= 5
    assert len({span.id for span in spans}) == len(spans)
    assert not any(span.failed for span in spans)
    told = turn.attributes
    assert (told["stillhere.outcome"], told["stillhere.steps"]) == ("answered", 2)
    (tool,) = [span for span in spans if span.name == "tool"]
    assert tool.attributes["gen_ai.tool.name"] == "now"
    first = next(span for span in spans if span.name == "model")
    assert first.attributes["gen_ai.request.model"] == "scripted"
    assert first.attributes["gen_ai.usage.input_tokens"] == 30
    assert all(turn.start <= span.start <= span.end for span in spans)
    assert turn.resource["service.name"] == "stillhere"


async def test_no_word_of_people_and_no_id_of_theirs_leaves(collector: Collector) -> None:
    odd = ToolCall("ada-call", "tell ada's secret", '{"to": "secret"}')
    there = house(collector, ModelReply(text="", calls=(odd,)), "noon")
    there.room.send_faults = [TransientError("secret")]
    async with there.lives():
        await there.room.hears("what time is it?", user="ada-lovelace", update_id="ada-1")
        await until(lambda: not there.room.send_faults)
        there.clock.passes(seconds=5)
        await there.room.sees("noon")
    assert len(collector.spans) > 5
    assert [word for word in WORDS if word.encode() in collector.raw] == []
    assert [s.attributes["stillhere.outcome"] for s in collector.spans if s.name == "send"] == [
        "retried",
        "sent",
    ]


async def test_a_restart_in_the_middle_goes_on_in_the_same_trace(collector: Collector) -> None:
    there = house(collector, drain=0)
    there.script.then(ModelReply(text="", calls=(ToolCall("c1", "now", "{}"),)))
    async with there.lives():
        there.script.hold()
        await there.room.hears("what time is it?")
        await until(lambda: len(there.script.requests) == 1)
        there.script.release()
        await until(lambda: len(there.script.requests) == 2 and there.script.left == 0)
    before = list(collector.spans)
    assert before
    there.clock.passes(minutes=3)
    there.script.then("noon")
    async with there.lives():
        await there.room.sees("noon")
    turn = root(collector.spans)
    after = [span for span in collector.spans if span not in before]
    assert {span.trace for span in collector.spans} == {turn.trace}
    assert {span.parent for span in collector.spans} == {"", turn.id}
    assert turn in after
    processes = [{s.resource["service.instance.id"] for s in some} for some in (before, after)]
    assert len(processes[0]) == len(processes[1]) == 1
    assert processes[0] != processes[1]
    assert turn.attributes["stillhere.resumes"] == 1
    assert (turn.end - turn.start) >= 180e9
    (session,) = await there.sessions()
    trace, first = ids_of(TurnId(session, 1))
    assert (turn.trace, turn.id) == (f"{trace:032x}", f"{first:016x}")


async def test_turns_have_traces_of_their_own_and_failures_are_marked(
    collector: Collector,
) -> None:
    there = house(collector, ModelFailure(kind="never", detail="secret"), "fine")
    async with there.lives():
        for words, seen in (("one", "cannot be used"), ("two", "fine")):
            await there.room.hears(words)
            await there.room.sees(seen)
    turns = [span for span in collector.spans if span.name == "turn"]
    assert [(turn.attributes["stillhere.outcome"], turn.failed) for turn in turns] == [
        ("failed", True),
        ("answered", False),
    ]
    assert turns[0].trace != turns[1].trace
    assert len([s for s in collector.spans if s.name == "model" and s.failed]) == 1


async def test_the_sdks_own_variables_hold(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "ada's bot")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc,team=t")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    there = house(collector, "hello")
    async with there.lives():
        await there.room.hears("hi")
        await there.room.sees("hello")
    assert root(collector.spans).resource["service.name"] == "ada's bot"
    assert (collector.headers[0]["x-key"], collector.headers[0]["team"]) == ("abc", "t")


async def test_a_sampler_keeps_whole_traces_or_nothing_of_them(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    many = 20
    there = house(collector, *["fine"] * many)
    async with there.lives():
        for nth in range(1, many + 1):
            await there.room.hears("hi")
            await there.room.sees("fine", times=nth)
    whole = {span.trace for span in collector.spans if span.name == "turn"}
    assert 0 < len(whole) < many
    assert {span.trace for span in collector.spans} == whole


@pytest.mark.parametrize("status", [503, 401])
async def test_a_collector_that_takes_nothing_costs_a_warning(
    collector: Collector, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    collector.status = status
    there = house(collector, *["fine"] * 3)
    with capture_logs() as lines:
        async with there.lives():
            for nth in (1, 2, 3):
                await there.room.hears("hi")
                await there.room.sees("fine", times=nth)
                await until(lambda nth=nth: len(collector.headers) >= nth)
    assert len([line for line in lines if "collector" in line["event"]]) == 1
    assert await there.outcomes() == {"answered": 3}


async def test_a_collector_that_hangs_holds_up_no_stop(collector: Collector) -> None:
    collector.answers.clear()
    there = house(collector, "fine")
    with capture_logs() as lines:
        async with asyncio.timeout(8), there.lives():
            await there.room.hears("hi")
            await there.room.sees("fine")
    assert len(collector.headers) == 1
    assert await there.outcomes() == {"answered": 1}
    assert [line["event"] for line in lines if "traces" in line["event"]] == [
        "the last traces were not taken in time"
    ]


async def test_a_collector_that_is_not_there_costs_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = "http://127.0.0.1:1"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", nowhere)
    there = House("fine")
    there.environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": nowhere}
    with capture_logs() as lines:
        async with asyncio.timeout(8), there.lives():
            await there.room.hears("hi")
            await there.room.sees("fine")
    assert await there.outcomes() == {"answered": 1}
    assert [line["event"] for line in lines if "traces" in line["event"]]


async def test_a_variable_that_makes_no_sense_is_said_and_the_bot_runs(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    there = house(collector, "fine")
    with capture_logs() as lines:
        async with there.lives():
            await there.room.hears("hi")
            await there.room.sees("fine")
    assert collector.spans == []
    assert [line["log_level"] for line in lines if "no traces" in line["event"]] == ["error"]
