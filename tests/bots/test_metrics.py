"""What a scrape by Prometheus reads, as its own parser reads it."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import httpx
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from bots.counters import Counters
from bots.metrics import Kept, Reading, metrics_route
from bots.platforms import Health
from core.domain.ledger import Ledger
from core.domain.messages import Usage

AT = datetime(2026, 5, 5, tzinfo=UTC)
WELL = Reading(
    ready=True,
    kept=Kept(
        ledger={
            "slack": Ledger(accepted=2, answered=2),
            "telegram": Ledger(accepted=9, answered=4, failed=1, discarded=2, pending=1),
        },
        undelivered={"telegram": {"failed": 3, "pending": 1}},
        spent={"telegram": Usage(1000, 200, 0.125, 300)},
        waits={"telegram": 12.5},
        abandoned=2,
    ),
    turns={"thinking": 3},
    health={
        "slack": Health(ok=False, detail="", last_error="", last_error_at=AT),
        "telegram": Health(ok=True, detail="", connected_since=AT, last_inbound=AT),
    },
)


async def scraped(read: Callable[[], Awaitable[Reading]]) -> httpx.Response:
    app = httpx.ASGITransport(Starlette(routes=[metrics_route(read, Counters())]))
    async with httpx.AsyncClient(transport=app, base_url="http://bot") as client:
        return await client.get("/metrics")


def samples(text: str) -> dict[tuple[str, ...], float]:
    """By the metric's name and its labels' values."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_every_number_is_told_once() -> None:
    async def read() -> Reading:
        return WELL

    answer = await scraped(read)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = samples(answer.text)
    messages = {key[1:]: n for key, n in found.items() if key[0] == "stillhere_messages"}
    assert messages == {
        ("accepted", "slack"): 2,
        ("answered", "slack"): 2,
        ("failed", "slack"): 0,
        ("discarded", "slack"): 0,
        ("pending", "slack"): 0,
        ("accepted", "telegram"): 9,
        ("answered", "telegram"): 4,
        ("failed", "telegram"): 1,
        ("discarded", "telegram"): 2,
        ("pending", "telegram"): 1,
    }
    assert found["stillhere_ledger_balanced", "slack"] == 1
    assert found["stillhere_ledger_balanced", "telegram"] == 0
    assert found["stillhere_outbox", "telegram", "failed"] == 3
    assert found["stillhere_outbox", "telegram", "pending"] == 1
    assert found["stillhere_outbox", "telegram", "unknown"] == 0
    assert found["stillhere_outbox", "slack", "failed"] == 0
    assert found["stillhere_ready",] == 1
    assert found["stillhere_platform_ok", "slack"] == 0
    assert found["stillhere_platform_ok", "telegram"] == 1
    seconds = {
        key[1:]: n for key, n in found.items() if key[0] == "stillhere_platform_last_seconds"
    }
    assert seconds == {
        ("slack", "last_error_at"): AT.timestamp(),
        ("telegram", "connected_since"): AT.timestamp(),
        ("telegram", "last_inbound"): AT.timestamp(),
    }
    assert found["stillhere_tokens_total", "prompt", "telegram"] == 1000
    assert found["stillhere_tokens_total", "completion", "telegram"] == 200
    assert found["stillhere_tokens_total", "cached", "telegram"] == 300
    assert found["stillhere_cost_dollars_total", "telegram"] == 0.125
    assert found["stillhere_queue_age_seconds", "telegram"] == 12.5
    assert found["stillhere_queue_age_seconds", "slack"] == 0
    assert found["stillhere_abandoned_turns",] == 2
    assert found["stillhere_open_turns", "thinking"] == 3
    assert found["stillhere_open_turns", "waiting"] == 0
    assert found["stillhere_database_up",] == 1
    assert len(found) == len([line for line in answer.text.splitlines() if line[0] != "#"])


async def test_a_scrape_shows_this_moment_and_none_before() -> None:
    readings = iter([WELL, Reading(ready=False, kept=None, health={})])

    async def read() -> Reading:
        return next(readings)

    await scraped(read)
    found = samples((await scraped(read)).text)
    assert found["stillhere_ready",] == 0
    assert found["stillhere_database_up",] == 0
    assert found["stillhere_database_errors_total",] == 0
    assert not {key for key in found if set(key) & {"telegram", "slack"}}
