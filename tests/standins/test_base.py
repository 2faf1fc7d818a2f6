"""Faults, hooks and the call log, the same for every stand-in; no SDK here."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.standins.base import Call, StandIn
from tests.standins.faults import (
    ANY,
    BAD_GATEWAY,
    GARBAGE,
    HTML_502,
    Fault,
    Hang,
    Refuse,
    Reset,
    Slow,
    StoreThenCut,
    too_many,
)

PUT_A_CUP = "import sys, urllib.request as u; u.urlopen(sys.argv[1], b'')"
CUT = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)


class Shelf(StandIn):
    """Puts down what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.things: list[str] = []

    def routes(self) -> Iterable[web.RouteDef]:
        yield web.post("/{method}", self._on_call)

    async def act(self, call: Call) -> Any:
        self.things.append(call.params["thing"])
        return len(self.things)

    async def answer(self, call: Call, request: web.Request) -> web.StreamResponse:
        return web.json_response(call.effect)

    def refusal(self, refuse: Refuse) -> web.Response:
        return web.Response(status=refuse.status, text=refuse.text)

    async def work(self) -> None: ...

    async def _on_call(self, request: web.Request) -> web.StreamResponse:
        return await self.handle(request, request.match_info["method"], dict(request.query))


class Client:
    """`put` answers with status and body, as text."""

    def __init__(self, session: aiohttp.ClientSession, shelf: Shelf) -> None:
        self.session = session
        self.shelf = shelf

    async def put(self, thing: str, method: str = "put") -> tuple[int, str]:
        url = f"{self.shelf.url}/{method}"
        async with self.session.post(url, params={"thing": thing}) as response:
            return response.status, await response.text()


@pytest.fixture
async def shelf() -> AsyncIterator[Shelf]:
    async with Shelf() as shelf:
        yield shelf


@pytest.fixture
async def client(shelf: Shelf) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(session, shelf)


async def test_calls_are_numbered_over_all_and_by_method(shelf: Shelf, client: Client) -> None:
    for method in ("put", "drop", "put"):
        await client.put("cup", method)
    seen = [(c.number, c.nth, c.method, c.effect, c.outcome) for c in shelf.calls]
    assert seen == [(1, 1, "put", 1, "ok"), (2, 1, "drop", 2, "ok"), (3, 2, "put", 3, "ok")]
    assert shelf.calls_of("drop") == [shelf.calls[1]]


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        (too_many(3), (429, "Too Many Requests: retry after 3")),
        (Refuse(500, "no"), (500, "no")),
        (BAD_GATEWAY, (502, HTML_502)),
        (GARBAGE, (200, GARBAGE.body)),
    ],
    ids=["429", "500", "502", "garbage"],
)
async def test_an_error_stores_nothing(
    shelf: Shelf, client: Client, fault: Fault, answer: tuple[int, str]
) -> None:
    shelf.faults.next("put", fault)
    assert (await client.put("cup"), shelf.things) == (answer, [])
    assert await client.put("cup") == (200, "1")


@pytest.mark.parametrize(
    ("fault", "things"), [(Reset(), []), (StoreThenCut(), ["cup"])], ids=["reset", "stored"]
)
async def test_a_cut_connection_tells_the_client_nothing(
    shelf: Shelf, client: Client, fault: Fault, things: list[str]
) -> None:
    shelf.faults.next("put", fault)
    with pytest.raises(CUT):
        await client.put("cup")
    assert shelf.things == things


@pytest.mark.parametrize("stores", [False, True])
async def test_a_hang_ends_when_the_client_leaves(
    shelf: Shelf, client: Client, *, stores: bool
) -> None:
    shelf.faults.next("put", Hang(stores=stores))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.put("cup"), 0.1)
    await shelf.wait_for(lambda: shelf.calls[0].cancelled)
    assert shelf.things == ["cup"] * stores


async def test_a_hang_ends_when_the_stand_in_stops(shelf: Shelf, client: Client) -> None:
    shelf.faults.next("put", Hang())
    hanging = asyncio.create_task(client.put("cup"))
    await shelf.wait_for(lambda: shelf.calls)
    await asyncio.to_thread(shelf.stop)
    with pytest.raises(CUT):
        await hanging


async def test_a_slow_call_takes_effect_although_the_client_left(
    shelf: Shelf, client: Client
) -> None:
    shelf.faults.next("put", Slow(0.2))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.put("cup"), 0.05)
    assert shelf.things == []
    await shelf.wait_for(lambda: shelf.things == ["cup"])


async def test_faults_go_by_ordinal_then_queue_then_standing(shelf: Shelf, client: Client) -> None:
    shelf.faults.always(ANY, Refuse(503, "always"))
    shelf.faults.next("put", Refuse(500, "first"), Refuse(501, "second"))
    shelf.faults.at("put", 2, Refuse(418, "the second call"))
    assert [(await client.put("cup"))[0] for _ in range(4)] == [500, 418, 501, 503]
    shelf.faults.clear()
    assert await client.put("cup") == (200, "1")


async def test_hooks_stand_on_both_sides_of_the_effect(shelf: Shelf, client: Client) -> None:
    seen: list[tuple[str, list[str]]] = []

    async def before(call: Call) -> None:
        seen.append((f"before {call.number}", list(shelf.things)))

    def after(call: Call) -> None:
        seen.append((f"after {call.number}", list(shelf.things)))

    shelf.before, shelf.after = before, after
    await client.put("cup")
    assert seen == [("before 1", []), ("after 1", ["cup"])]


async def test_a_hook_can_cut_before_and_after_the_effect(shelf: Shelf, client: Client) -> None:
    shelf.before = lambda call: Reset() if call.number == 1 else None
    shelf.after = lambda call: Reset() if call.number == 2 else None
    for thing in ("cup", "plate"):
        with pytest.raises(CUT):
            await client.put(thing)
    assert shelf.things == ["plate"]
    assert await client.put("fork") == (200, "2")


@pytest.mark.parametrize(
    ("side", "things"), [("before", []), ("after", ["cup"])], ids=["before", "after"]
)
async def test_a_process_is_killed_on_either_side_of_the_effect(
    shelf: Shelf, side: str, things: list[str]
) -> None:
    def kill(call: Call) -> Fault:
        os.kill(process.pid, signal.SIGKILL)
        return Reset()

    setattr(shelf, side, kill)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PUT_A_CUP, f"{shelf.url}/put?thing=cup"
    )
    assert await process.wait() == -signal.SIGKILL
    await shelf.wait_for(lambda: shelf.calls[0].outcome != "open")
    assert shelf.things == things


async def test_it_comes_back_on_the_same_port_with_its_state(shelf: Shelf, client: Client) -> None:
    await client.put("cup")
    url = shelf.url
    await asyncio.to_thread(shelf.stop)
    with pytest.raises(aiohttp.ClientConnectorError):
        await client.put("plate")
    shelf.start()
    assert shelf.url == url
    assert await client.put("fork") == (200, "2")


async def test_waiting_in_vain_shows_the_calls(shelf: Shelf, client: Client) -> None:
    await client.put("cup")
    with pytest.raises(AssertionError, match="1 put: ok"):
        await shelf.wait_for(lambda: False, timeout=0.02)


async def test_its_own_bug_comes_out_at_stop() -> None:
    shelf = Shelf()
    shelf.start()
    async with aiohttp.ClientSession() as session, session.post(f"{shelf.url}/put") as response:
        assert response.status == 500
    with pytest.raises(BaseExceptionGroup, match="Shelf is broken"):
        await asyncio.to_thread(shelf.stop)


def test_the_port_is_of_this_machine_alone() -> None:
    with Shelf() as shelf:
        host, port = shelf.url.removeprefix("http://").split(":")
        assert host == "127.0.0.1"
        socket.create_connection((host, int(port)), timeout=1).close()
