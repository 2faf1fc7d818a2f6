"""What stands before several replicas on a host: each request goes to the next of them that
answers; it keeps nothing."""

import asyncio
import time
from collections.abc import Callable

import aiohttp
from aiohttp import web

ANSWER_SECONDS = 4.0
"""Then a replica counts as one that does not answer, as one that stands still does not."""
ILL_SECONDS = 10.0
"""For so long one that did not answer is asked after the others."""


class Balancer:
    """``ports`` are those of the replicas."""

    def __init__(self, port: int, ports: Callable[[], list[int]]) -> None:
        self.port = port
        self._ports = ports
        self._turn = 0
        self._ill: dict[int, float] = {}
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.Response:
        body = await request.read()
        for port in self._in_turn():
            try:
                return await self._ask(port, request, body)
            except (aiohttp.ClientError, TimeoutError):
                self._ill[port] = time.monotonic() + ILL_SECONDS
        raise web.HTTPBadGateway

    def _in_turn(self) -> list[int]:
        self._turn += 1
        ports, now = self._ports(), time.monotonic()
        first = self._turn % len(ports) if ports else 0
        return sorted(ports[first:] + ports[:first], key=lambda port: self._ill.get(port, 0) > now)

    async def _ask(self, port: int, request: web.Request, body: bytes) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        url = f"http://127.0.0.1:{port}{request.path_qs}"
        async with (
            asyncio.timeout(ANSWER_SECONDS),
            aiohttp.ClientSession() as session,
            session.request(request.method, url, data=body, headers=headers) as answer,
        ):
            return web.Response(status=answer.status, body=await answer.read())
