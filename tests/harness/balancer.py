"""What stands before several replicas on a host: each request goes to the next of them that
answers; it keeps nothing."""

import asyncio
from collections.abc import Callable, Sequence

import aiohttp
from aiohttp import web

ANSWER_SECONDS = 2.0
"""Then a replica counts as one that does not answer, as one that stands still does not."""
NOBODY = web.HTTPBadGateway


class Balancer:
    """``ports`` are those of the replicas."""

    def __init__(self, port: int, ports: Callable[[], Sequence[int]]) -> None:
        self.port = port
        self._ports = ports
        self._turn = 0
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
        self._turn += 1
        ports = self._ports()
        for place in range(len(ports)):
            port = ports[(self._turn + place) % len(ports)]
            try:
                return await self._ask(port, request, body)
            except (aiohttp.ClientError, TimeoutError):
                continue
        raise NOBODY

    async def _ask(self, port: int, request: web.Request, body: bytes) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        url = f"http://127.0.0.1:{port}{request.path_qs}"
        async with (
            asyncio.timeout(ANSWER_SECONDS),
            aiohttp.ClientSession() as session,
            session.request(request.method, url, data=body, headers=headers) as answer,
        ):
            return web.Response(status=answer.status, body=await answer.read())
