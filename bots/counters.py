"""What this process counted and timed since its start, for Prometheus; it names no person.

https://prometheus.io/docs/practices/naming/
"""

from collections.abc import Iterable
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest

from core.ports import Happening, Span, TurnEnd

SEND_OUTCOMES = ("sent", "retried", "failed", "unknown")
"""All are shown, at 0 too, so that an alert has something to look at."""
OPERATIONS = ("read", "write")
SLOW = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)
"""Seconds: models, tools, turns."""
QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds: the database, and the platforms."""


class Counters:
    """A ``bots.watch.Sink``."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        def timer(
            name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
        ) -> Histogram:
            full = f"stillhere_{name}_seconds"
            return Histogram(full, text, labels, buckets=buckets, registry=registry)

        self._turns = timer(
            "turn",
            "Turns that ended here, from their beginning, pauses and restarts included.",
            ("platform", "outcome"),
            SLOW,
        )
        self._steps = timer(
            "step",
            "Steps of turns: what is shown is put together, the model asked, its reply stored.",
            ("outcome",),
            SLOW,
        )
        self._models = timer(
            "model", "Requests to models, their own retries included.", ("use", "outcome"), SLOW
        )
        self._tools = timer("tool", "Tool calls.", ("tool", "outcome"), SLOW)
        self._commits = timer(
            "commit", "Commits of sessions, with the wait for their transaction.", (), QUICK
        )
        self._transactions = timer(
            "database", "Transactions, each with all that goes together.", ("operation",), QUICK
        )
        self._sending = timer(
            "send", "Messages sent or edited, previews excepted.", ("platform",), QUICK
        )
        self._sends = self._counter(
            "sends", "Tries to send a message, and what became of them.", "platform", "outcome"
        )
        self._happenings: dict[Happening, Counter] = {
            "rate_limit": self._counter(
                "rate_limits", "Times that a platform said: not so fast (429).", "platform"
            ),
            "recovery": self._counter(
                "recoveries", "Turns that broke off, taken up again here.", "platform"
            ),
            "handover": self._counter(
                "handovers",
                "Open turns taken here that another process left, stopping or without room.",
                "platform",
            ),
            "lease_loss": self._counter(
                "lease_losses",
                "Sessions, or a bot's messages, that another process took.",
                "platform",
            ),
            "database_error": self._counter(
                "database_errors", "Transactions that failed; openings in vain included."
            ),
        }
        for operation in OPERATIONS:
            self._transactions.labels(operation)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"stillhere_{name}_total", text, labels, registry=self._registry)

    def serve(self, platforms: Iterable[str]) -> None:
        """From now on their counts are shown, at 0 too."""
        for platform in platforms:
            for outcome in SEND_OUTCOMES:
                self._sends.labels(platform, outcome)
            for happening in ("rate_limit", "recovery", "handover", "lease_loss"):
                self._happenings[happening].labels(platform)

    def count(self, what: Happening, platform: str) -> None:
        counter = self._happenings[what]
        (counter if what == "database_error" else counter.labels(platform)).inc()

    def done(self, span: Span, began: datetime, seconds: float) -> None:
        match span.kind:
            case "step":
                self._steps.labels(span.outcome).observe(seconds)
            case "model" | "summary":
                use = "turn" if span.kind == "model" else "summary"
                self._models.labels(use, span.outcome).observe(seconds)
            case "tool":
                self._tools.labels(span.name, span.outcome).observe(seconds)
            case "commit":
                self._commits.observe(seconds)
            case "transaction":
                self._transactions.labels(span.name).observe(seconds)
            case "send":
                self._sending.labels(span.platform).observe(seconds)
                self._sends.labels(span.platform, span.outcome).inc()

    def ended(self, turn: TurnEnd) -> None:
        seconds = (turn.ended_at - turn.started_at).total_seconds()
        self._turns.labels(turn.platform, turn.outcome).observe(max(0.0, seconds))

    def close(self) -> None:
        pass

    def exposition(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self._registry)
