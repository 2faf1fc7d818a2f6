"""What a host sees over HTTP: whether the process lives, whether it can work, and a stop."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from bots.web import STOP_SECONDS, Server, bind, make_server
from core.errors import ConfigurationError


class Readiness:
    def __init__(self) -> None:
        self.ready = True
        self.detail: dict[str, Any] = {"database": "ok"}

    async def __call__(self) -> tuple[bool, dict[str, Any]]:
        return self.ready, self.detail


@asynccontextmanager
async def serving(
    readiness: Readiness, *routes: BaseRoute
) -> AsyncGenerator[tuple[httpx.AsyncClient, Server, asyncio.Task[None]]]:
    with bind(0) as listener:
        server = make_server(readiness, routes)
        task = asyncio.create_task(server.serve([listener]))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            yield client, server, task
        server.should_exit = True
        await task


async def test_the_process_says_that_it_lives() -> None:
    async with serving(Readiness()) as (client, _, _):
        health = await client.get("/healthz")
        assert (health.status_code, health.text) == (200, "ok\n")
        assert (await client.head("/healthz")).status_code == 200
        assert (await client.get("/elsewhere")).status_code == 404


async def test_readiness_has_its_reason() -> None:
    readiness = Readiness()
    async with serving(readiness) as (client, _, _):
        well = await client.get("/readyz")
        readiness.ready, readiness.detail = False, {"database": "cannot be written: disk full"}
        ill = await client.get("/readyz")
    assert (well.status_code, well.json()) == (200, {"ready": True, "database": "ok"})
    assert ill.status_code == 503
    assert ill.json() == {"ready": False, "database": "cannot be written: disk full"}


async def test_a_platforms_routes_are_served() -> None:
    async def hook(request: Request) -> Response:
        return PlainTextResponse(f"took {(await request.body()).decode()}")

    async with serving(Readiness(), Route("/hook", hook, methods=["POST"])) as (client, _, _):
        assert (await client.post("/hook", content=b"it")).text == "took it"


async def test_a_stop_does_not_wait_for_ever_for_a_request_under_way() -> None:
    opened = asyncio.Event()

    async def hang(request: Request) -> Response:
        opened.set()
        await asyncio.Event().wait()
        return Response()

    async with serving(Readiness(), Route("/hang", hang)) as (client, server, task):
        request = asyncio.create_task(client.get("/hang", timeout=30))
        await opened.wait()
        server.should_exit = True
        await asyncio.wait_for(task, STOP_SECONDS + 3)
        broken = await asyncio.gather(request, return_exceptions=True)
    assert isinstance(broken[0], httpx.HTTPError | httpx.Response)


async def test_a_request_that_is_nearly_done_is_answered_at_a_stop() -> None:
    opened = asyncio.Event()
    go_on = asyncio.Event()

    async def slow(request: Request) -> Response:
        opened.set()
        await go_on.wait()
        return PlainTextResponse("done")

    async with serving(Readiness(), Route("/slow", slow)) as (client, server, task):
        request = asyncio.create_task(client.get("/slow"))
        await opened.wait()
        server.should_exit = True
        go_on.set()
        assert (await request).text == "done"
        await task


def test_a_port_that_is_taken_is_a_wrong_setting() -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"^PORT: .*{port}.*set another"):
            bind(port)
