"""What a scrape by Prometheus is told of all that the database knows, and of this process; it
counts nothing itself, and names no person.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bots.counters import Counters
from bots.platforms import Health
from core.domain.ledger import Ledger
from core.domain.messages import Usage

OUTBOX_STATES = ("pending", "sending", "unknown", "failed")
"""«sent» is no open promise. All are shown, at 0 too, so that an alert has something to look at."""
PHASES = ("queued", "thinking", "acting", "waiting", "interrupted")
"""Those of an open turn."""
MOMENTS = ("last_sign", "connected_since", "last_inbound", "last_outbound", "last_error_at")
"""Of ``Health``."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What the database knows, whichever process asks. ``undelivered`` counts the outbox's rows by
    platform and state; ``waits`` has for how many seconds the oldest message that is owed an answer
    has waited, by platform; ``abandoned`` counts the open turns that nobody works on."""

    ledger: Mapping[str, Ledger]
    undelivered: Mapping[str, Mapping[str, int]]
    spent: Mapping[str, Usage] = {}
    waits: Mapping[str, float] = {}
    abandoned: int = 0


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """``kept`` is None while the database is away. ``turns`` counts those that are open in this
    process, by phase."""

    ready: bool
    kept: Kept | None
    health: Mapping[str, Health]
    turns: Mapping[str, int] = {}


class _Gauges(Collector):
    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def collect(self) -> Iterable[Metric]:
        reading = self._reading
        if reading.kept is not None:
            yield from _of_messages(reading.kept)
            yield from _of_waiting(reading.kept, reading.health)
            yield from _of_costs(reading.kept)
        yield from _of_platforms(reading.health)
        turns = GaugeMetricFamily(
            "stillhere_open_turns",
            "Turns that this process works on, or has put to wait.",
            labels=("phase",),
        )
        for phase in PHASES:
            turns.add_metric((phase,), reading.turns.get(phase, 0))
        yield turns
        yield GaugeMetricFamily(
            "stillhere_database_up",
            "1 if the database answered this scrape; if not, all that only it knows is absent.",
            value=reading.kept is not None,
        )
        yield GaugeMetricFamily(
            "stillhere_ready",
            "1 if this process takes messages and answers them.",
            value=reading.ready,
        )


def _of_messages(kept: Kept) -> Iterable[Metric]:
    messages = GaugeMetricFamily(
        "stillhere_messages",
        "Messages taken, and what became of them; pending is what the sessions owe.",
        labels=("platform", "outcome"),
    )
    balanced = GaugeMetricFamily(
        "stillhere_ledger_balanced",
        "1 if accepted = answered + failed + discarded + pending.",
        labels=("platform",),
    )
    outbox = GaugeMetricFamily(
        "stillhere_outbox",
        "Messages promised and not delivered, previews excepted.",
        labels=("platform", "state"),
    )
    for platform, ledger in kept.ledger.items():
        balanced.add_metric((platform,), ledger.balanced)
        for outcome, count in ledger.numbers.items():
            messages.add_metric((platform, outcome), count)
    for platform in sorted({*kept.ledger, *kept.undelivered}):
        for state in OUTBOX_STATES:
            count = kept.undelivered.get(platform, {}).get(state, 0)
            outbox.add_metric((platform, state), count)
    yield messages
    yield balanced
    yield outbox


def _of_waiting(kept: Kept, served: Iterable[str]) -> Iterable[Metric]:
    age = GaugeMetricFamily(
        "stillhere_queue_age_seconds",
        "For how long the oldest message that is not answered has waited; 0 where none does.",
        labels=("platform",),
    )
    for platform in sorted({*served, *kept.ledger, *kept.waits}):
        age.add_metric((platform,), kept.waits.get(platform, 0.0))
    yield age
    yield GaugeMetricFamily(
        "stillhere_abandoned_turns",
        "Open turns that no process works on, up to 1000; each waits for one to take it up.",
        value=kept.abandoned,
    )


def _of_costs(kept: Kept) -> Iterable[Metric]:
    tokens = CounterMetricFamily(
        "stillhere_tokens",
        "Tokens as the models' providers count them; cached ones are among the prompt's.",
        labels=("platform", "kind"),
    )
    dollars = CounterMetricFamily(
        "stillhere_cost_dollars",
        "What models cost in US dollars, as far as their prices are known.",
        labels=("platform",),
    )
    for platform, usage in kept.spent.items():
        for kind in ("prompt", "completion", "cached"):
            tokens.add_metric((platform, kind), getattr(usage, kind))
        dollars.add_metric((platform,), usage.cost)
    yield tokens
    yield dollars


def _of_platforms(health: Mapping[str, Health]) -> Iterable[Metric]:
    well = GaugeMetricFamily(
        "stillhere_platform_ok",
        "1 if this process receives the platform's messages, or leaves that to another.",
        labels=("platform",),
    )
    seconds = GaugeMetricFamily(
        "stillhere_platform_last_seconds",
        "When it happened last, in Unix time; absent if not since the start.",
        labels=("platform", "what"),
    )
    for platform, one in health.items():
        well.add_metric((platform,), one.ok)
        for what in MOMENTS:
            at = getattr(one, what)
            if at is not None:
                seconds.add_metric((platform, what), at.timestamp())
    yield well
    yield seconds


def exposition(reading: Reading) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gauges(reading))
    return generate_latest(registry)


def metrics_route(read: Callable[[], Awaitable[Reading]], counters: Counters) -> Route:
    """``read`` never raises: what is counted here is told while the database is away, too."""

    async def metrics(request: Request) -> Response:
        reading = await read()
        counters.serve(reading.health)
        text = exposition(reading) + counters.exposition()
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return Route("/metrics", metrics)
