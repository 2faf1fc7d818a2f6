"""What a scrape by Prometheus is told; it counts nothing itself, and names no person.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bots.platforms import Health
from core.domain.ledger import Ledger
from core.domain.messages import Usage
from core.errors import StorageError

OUTBOX_STATES = ("pending", "sending", "unknown", "failed")
"""«sent» is no open promise. All are shown, at 0 too, so that an alert has something to look at."""
MOMENTS = ("last_sign", "connected_since", "last_inbound", "last_outbound", "last_error_at")
"""Of ``Health``."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """``undelivered`` counts the outbox's rows by platform and state."""

    ready: bool
    ledger: Mapping[str, Ledger]
    undelivered: Mapping[str, Mapping[str, int]]
    health: Mapping[str, Health]
    spent: Mapping[str, Usage] = {}


class _Gauges(Collector):
    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def collect(self) -> Iterable[Metric]:
        reading = self._reading
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
        for platform, ledger in reading.ledger.items():
            balanced.add_metric((platform,), ledger.balanced)
            for outcome, count in ledger.numbers.items():
                messages.add_metric((platform, outcome), count)
        for platform in sorted({*reading.ledger, *reading.undelivered}):
            for state in OUTBOX_STATES:
                count = reading.undelivered.get(platform, {}).get(state, 0)
                outbox.add_metric((platform, state), count)
        yield messages
        yield balanced
        yield outbox
        yield from self._costs()
        yield from self._signs()
        yield GaugeMetricFamily(
            "stillhere_ready",
            "1 if this process takes messages and answers them.",
            value=reading.ready,
        )

    def _costs(self) -> Iterable[Metric]:
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
        for platform, usage in self._reading.spent.items():
            for kind in ("prompt", "completion", "cached"):
                tokens.add_metric((platform, kind), getattr(usage, kind))
            dollars.add_metric((platform,), usage.cost)
        yield tokens
        yield dollars

    def _signs(self) -> Iterable[Metric]:
        well = GaugeMetricFamily(
            "stillhere_platform_ok",
            "1 if this process receives the platform's messages.",
            labels=("platform",),
        )
        seconds = GaugeMetricFamily(
            "stillhere_platform_last_seconds",
            "When it happened last, in Unix time; absent if not since the start.",
            labels=("platform", "what"),
        )
        for platform, health in self._reading.health.items():
            well.add_metric((platform,), health.ok)
            for what in MOMENTS:
                at = getattr(health, what)
                if at is not None:
                    seconds.add_metric((platform, what), at.timestamp())
        yield well
        yield seconds


def exposition(reading: Reading) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gauges(reading))
    return generate_latest(registry)


def metrics_route(read: Callable[[], Awaitable[Reading]]) -> Route:
    """``read`` raises StorageError or TimeoutError when the database is away."""

    async def metrics(request: Request) -> Response:
        try:
            reading = await read()
        except (StorageError, TimeoutError):
            return PlainTextResponse("the database does not answer\n", status_code=503)
        return Response(exposition(reading), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return Route("/metrics", metrics)
