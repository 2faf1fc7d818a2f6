"""Turns as traces of OpenTelemetry, sent by OTLP over HTTP; imported where a collector is set.

A turn may be begun by one process and ended by another. Its spans meet in one trace, though nothing
is kept of it anywhere: the trace's id, and the id of its first span, are made from the session's id
and the turn's number by whoever works on the turn. The first span, «turn», is sent by who ends the
turn; all others name it as their parent, also those that were sent before it, or by a process that
is dead by then. Whether a trace is kept (``OTEL_TRACES_SAMPLER``) is asked of the sampler with that
same id, so that every process says the same.

The SDK reads its own variables (service name, headers, timeouts, sampler).
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

import hashlib
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import structlog
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.util.types import AttributeValue

from bots.clock import short_id, stopwatch
from core.domain.keys import TurnId
from core.ports import Happening, Span, TurnEnd

SAID_EVERY = 600.0
"""Seconds between two complaints of a collector that is away."""
KINDS = {
    "model": SpanKind.CLIENT,
    "tool": SpanKind.INTERNAL,
    "commit": SpanKind.CLIENT,
    "send": SpanKind.CLIENT,
}
"""What is traced; a step is its model call and its commit."""
WELL = frozenset({"replied", "ok", "stored", "sent"})
_NOISY = ("opentelemetry.exporter", "opentelemetry.sdk._shared_internal")
"""Tell each try that failed; it is said here, and seldom."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

log = structlog.get_logger(__name__)


class _Ids(RandomIdGenerator):
    """Random ones, but for the span that begins a trace."""

    def __init__(self) -> None:
        self.first: tuple[int, int] | None = None

    def generate_trace_id(self) -> int:
        return self.first[0] if self.first else super().generate_trace_id()

    def generate_span_id(self) -> int:
        return self.first[1] if self.first else super().generate_span_id()


class Patient(SpanExporter):
    """What is not taken is gone: that a collector is away is said seldom, and waited for never."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._silent_until = 0.0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._inner.export(spans)
        except Exception as error:  # noqa: BLE001 (the top of the SDK's own thread)
            self._complain(type(error).__name__)
            return SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self._complain("not taken")
        return result

    def _complain(self, why: str) -> None:
        now = stopwatch()
        if now >= self._silent_until:
            self._silent_until = now + SAID_EVERY
            log.warning("traces are lost: the collector is away, or refuses them", why=why)

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)


class Tracing:
    """A ``bots.watch.Sink``; its calls come from one thread. Whoever else uses OpenTelemetry in
    this process has a provider of their own."""

    def __init__(self) -> None:
        """Raises what the SDK does for variables that it cannot make sense of."""
        for name in _NOISY:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        ours = Resource({"service.name": "stillhere", "service.instance.id": short_id()})
        resource = Resource.create(ours.merge(OTELResourceDetector().detect()).attributes)
        self._ids = _Ids()
        self._provider = TracerProvider(
            resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(Patient(OTLPSpanExporter())))
        self._tracer = self._provider.get_tracer("stillhere")

    def count(self, what: Happening, platform: str) -> None:
        pass

    def done(self, span: Span, began: datetime, seconds: float) -> None:
        if span.turn is None or span.kind not in KINDS:
            return
        start = _nanoseconds(began)
        one = self._tracer.start_span(
            span.kind,
            self._inside(span.turn),
            KINDS[span.kind],
            _attributes_of(span),
            start_time=start,
        )
        if span.outcome not in WELL:
            one.set_status(Status(StatusCode.ERROR, span.outcome))
        one.end(start + int(seconds * 1_000_000_000))

    def ended(self, turn: TurnEnd) -> None:
        self._ids.first = ids_of(turn.turn)
        try:
            one = self._tracer.start_span(
                "turn",
                Context(),
                SpanKind.CONSUMER,
                {
                    "stillhere.session": turn.turn.session,
                    "stillhere.turn": turn.turn.number,
                    "stillhere.platform": turn.platform,
                    "stillhere.outcome": turn.outcome,
                    "stillhere.steps": turn.steps,
                    "stillhere.resumes": turn.resumes,
                },
                start_time=_nanoseconds(turn.started_at),
            )
        finally:
            self._ids.first = None
        if turn.outcome == "failed":
            one.set_status(Status(StatusCode.ERROR, turn.reason))
        one.end(_nanoseconds(turn.ended_at))

    def close(self) -> None:
        self._provider.shutdown()

    def _inside(self, turn: TurnId) -> Context:
        """A context whose span is the turn's first one, which may not be there yet."""
        trace, first = ids_of(turn)
        kept = self._provider.sampler.should_sample(Context(), trace, "turn")
        flags = TraceFlags.SAMPLED if kept.decision.is_sampled() else TraceFlags.DEFAULT
        parent = SpanContext(trace, first, is_remote=True, trace_flags=TraceFlags(flags))
        return set_span_in_context(NonRecordingSpan(parent), Context())


def ids_of(turn: TurnId) -> tuple[int, int]:
    """Of the trace and of its first span: 128 and 64 bits, never 0."""
    digest = hashlib.sha256(f"{turn.session}/{turn.number}".encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:24]) or 1


def _attributes_of(span: Span) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {
        "stillhere.platform": span.platform,
        "stillhere.outcome": span.outcome,
    }
    if span.step:
        found["stillhere.step"] = span.step
    match span.kind:
        case "model":
            found["gen_ai.operation.name"] = "chat"
            found["gen_ai.request.model"] = span.name
            found["gen_ai.usage.input_tokens"] = span.usage.prompt
            found["gen_ai.usage.output_tokens"] = span.usage.completion
        case "tool":
            found["gen_ai.operation.name"] = "execute_tool"
            found["gen_ai.tool.name"] = span.name
        case _:
            pass
    return found


def _nanoseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000
