"""The HTTP side: health for the host, routes for webhooks; it knows no session."""

import contextlib
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from core.errors import ConfigurationError

STOP_SECONDS = 2
"""What a request under way gets at a stop, after the turns and the outbox had their time."""

Readiness = Callable[[], Awaitable[tuple[bool, dict[str, Any]]]]


def bind(port: int) -> socket.socket:
    """Bound at once, before anything slow. Raises ConfigurationError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("0.0.0.0", port))  # noqa: S104 (a PaaS routes to any address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        message = f"PORT: cannot listen on {port} ({error.strerror}); free it or set another"
        raise ConfigurationError(message) from error
    return listener


class Server(uvicorn.Server):
    """Leaves the process's signals to the application."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def make_server(readiness: Readiness, routes: Sequence[BaseRoute]) -> Server:
    """``/healthz`` says that the process lives, ``/readyz`` whether it can work, and why not."""

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        ready, detail = await readiness()
        return JSONResponse({"ready": ready, **detail}, status_code=200 if ready else 503)

    app = Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz), *routes])
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    return Server(config)
