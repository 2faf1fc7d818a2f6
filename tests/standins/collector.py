"""A collector of OpenTelemetry on 127.0.0.1 that takes traces by OTLP over HTTP, and shows nobody.

https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Status


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A span as it came; ids in hex, times in nanoseconds since 1970. ``resource`` is of the
    process that sent it."""

    name: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    failed: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]


class Collector:
    """Answers with ``status``, and takes only what it answers 200."""

    def __init__(self) -> None:
        self.status = 200
        self.answers = threading.Event()
        """It hangs while this is not set."""
        self.answers.set()
        self.spans: list[Taken] = []
        self.headers: list[dict[str, str]] = []
        """Of each request, names in lower case."""
        self.raw = b""
        """All that came, so that what must not be in it can be looked for."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                zipped = self.headers.get("content-encoding") == "gzip"
                headers = {name.lower(): value for name, value in self.headers.items()}
                status = collector.take(
                    self.path, headers, gzip.decompress(body) if zipped else body
                )
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(status)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_request(self, code: object = "-", size: object = "-") -> None:
                pass

        return Handler

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        if path != "/v1/traces" or headers["content-type"] != "application/x-protobuf":
            return 404
        self.headers.append(headers)
        self.answers.wait()
        if self.status != 200:
            return self.status
        self.raw += body
        for of_process in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _plain(of_process.resource.attributes)
            self.spans += [
                Taken(
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    failed=span.status.code == Status.STATUS_CODE_ERROR,
                    attributes=_plain(span.attributes),
                    resource=resource,
                )
                for scope in of_process.scope_spans
                for span in scope.spans
            ]
        return 200


def _plain(pairs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        assert isinstance(pair, KeyValue)
        kind = pair.value.WhichOneof("value")
        found[pair.key] = getattr(pair.value, kind) if kind else None
    return found
