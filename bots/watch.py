"""What happens is told to whoever watches: Prometheus' counters always, a collector of traces where
one is set. Whatever is the matter with them, the work goes on."""

import importlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol
from urllib.parse import unquote

import structlog

from bots.clock import SystemClock, stopwatch
from bots.counters import Counters
from core.files.threads import in_thread
from core.ports import Clock, Happening, Span, TurnEnd

CLOSING_SECONDS = 2.0
"""For the last spans at a stop."""
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
"""Pairs ``name=value`` with commas between them; the key of whoever takes the traces is in them.
https://opentelemetry.io/docs/specs/otel/protocol/exporter/#specifying-headers-via-environment-variables
"""

log = structlog.get_logger(__name__)


class Sink(Protocol):
    """One who is told. What it raises is said once, and harms nobody."""

    def count(self, what: Happening, platform: str) -> None: ...

    def done(self, span: Span, began: datetime, seconds: float) -> None: ...

    def ended(self, turn: TurnEnd) -> None: ...

    def close(self) -> None:
        """Called in a thread; it may take a while."""
        ...


class Watch:
    """``core.ports.Telemetry``."""

    def __init__(self, clock: Clock, *others: Sink) -> None:
        self.counters = Counters()
        self._clock = clock
        self._sinks: tuple[Sink, ...] = (self.counters, *others)
        self._broken: set[int] = set()

    def count(self, what: Happening, platform: str = "") -> None:
        self._tell(lambda sink: sink.count(what, platform))

    @contextmanager
    def span(self, span: Span) -> Generator[Span]:
        began, start = self._clock.now(), stopwatch()
        try:
            yield span
        except BaseException as error:
            span.outcome = span.outcome or type(error).__name__
            raise
        finally:
            seconds = stopwatch() - start
            self._tell(lambda sink: sink.done(span, began, seconds))

    def ended(self, turn: TurnEnd) -> None:
        self._tell(lambda sink: sink.ended(turn))

    async def close(self) -> None:
        """The last word goes out, if that does not take long."""
        for sink in self._sinks:
            try:
                await in_thread(sink.close, CLOSING_SECONDS)
            except TimeoutError:
                log.info("the last traces were not taken in time")
            except Exception:
                log.exception("not closed", sink=type(sink).__name__)

    def _tell(self, what: Callable[[Sink], None]) -> None:
        for place, sink in enumerate(self._sinks):
            try:
                what(sink)
            except Exception:
                if place not in self._broken:
                    self._broken.add(place)
                    log.exception("not told; this is said once", sink=type(sink).__name__)


def build_watch(environment: Mapping[str, str], clock: Clock | None = None) -> Watch:
    """Traces are sent where one of ``ENDPOINTS`` is set; a fault in that is said, and not more."""
    clock = clock or SystemClock()
    if not wants_traces(environment):
        return Watch(clock)
    try:
        return Watch(clock, importlib.import_module("bots.tracing").Tracing())
    except ModuleNotFoundError as error:
        log.warning("no traces: install the extra `otel`", missing=error.name)
    except Exception:
        log.exception("no traces: the exporter cannot be set up; see the OTEL_ variables")
    return Watch(clock)


def wants_traces(environment: Mapping[str, str]) -> bool:
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    given = any(environment.get(name, "").strip() for name in ENDPOINTS)
    return given and not off and "otlp" in exporter.split(",")


def header_secrets(environment: Mapping[str, str]) -> frozenset[str]:
    """The values of the collector's headers, as they are written and as they are meant."""
    pairs = [pair for name in HEADERS for pair in environment.get(name, "").split(",")]
    values = {pair.partition("=")[2].strip() for pair in pairs}
    return frozenset(form for value in values if value for form in (value, unquote(value)))
