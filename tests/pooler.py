"""Poolers in transaction mode for tests: PgBouncer where the machine has it, and a small one that
does what matters of it: a client has a session of the server for one transaction."""

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import msgspec

from tests.postgres import end_with_parent, free_port, unprivileged

POOL = 2
"""Sessions of the server. Each transaction gets the one that has rested longest, so that two of a
client's seldom have the same."""
_SSL, _CANCEL = 80877103, 80877102
_ACCEPTED = ("user", "database", "client_encoding", "application_name", "datestyle", "timezone")
"""https://www.pgbouncer.org/config.html#ignore_startup_parameters"""


class Link(msgspec.Struct, eq=False):
    """A session of the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    greeting: bytes


class Pooler:
    """It checks no password, and speaks of no encryption."""

    def __init__(self, server: int, *, lax: bool = False) -> None:
        """``lax``: start-up settings are not refused, and have no effect, as PgBouncer's
        ``ignore_startup_parameters`` and some managed poolers have it."""
        self._server = server
        self._lax = lax
        self._resting: dict[bytes, asyncio.Queue[Link | None]] = {}
        self.links: list[asyncio.StreamWriter] = []
        """To both sides."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.links.append(writer)
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            if given := await self._greeted(reader, writer):
                try:
                    await self._transactions(given, reader, writer)
                except LoginError as error:
                    writer.write(error.message)
                    await writer.drain()
        writer.transport.abort()

    async def _greeted(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> "Given | None":
        """None for who asks for nothing that we have."""
        while True:
            asked = await _startup(reader)
            (code,) = struct.unpack("!i", asked[:4])
            if code == _CANCEL:
                return None
            if code != _SSL:
                break
            writer.write(b"N")
        words = asked[4:].split(b"\0")
        given = dict(zip(words[0::2], words[1::2], strict=False))
        for name in filter(None, given):
            if not self._lax and name.decode().lower() not in _ACCEPTED:
                text = b"unsupported startup parameter: " + name
                writer.write(_message(b"E", b"SFATAL\0C08P01\0M" + text + b"\0\0"))
                await writer.drain()
                return None
        return given

    async def _transactions(
        self, given: "Given", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        resting = self._pool(given)
        link = await self._linked(resting, given)
        resting.put_nowait(link)
        writer.write(link.greeting + _message(b"K", secrets.token_bytes(8)) + _message(b"Z", b"I"))
        said = asyncio.Queue[bytes]()
        reading = asyncio.create_task(_feed(reader, said))
        try:
            while (first := await said.get())[:1] != b"X":
                link = await self._linked(resting, given)
                link.writer.write(first)
                await self._transaction(link, said, writer, resting)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _transaction(
        self,
        link: Link,
        said: "asyncio.Queue[bytes]",
        writer: asyncio.StreamWriter,
        resting: "asyncio.Queue[Link | None]",
    ) -> None:
        """A session that is left in the middle is ended."""
        left: Link | None = None
        forth = asyncio.create_task(_send(said, link.writer))
        back = asyncio.create_task(_answer(link.reader, writer))
        try:
            await asyncio.wait((forth, back), return_when=asyncio.FIRST_COMPLETED)
            if back.done():
                back.result()
                left = link
            else:
                raise EOFError
        finally:
            for task in (forth, back):
                task.cancel()
            await asyncio.gather(forth, back, return_exceptions=True)
            if left is None:
                link.writer.transport.abort()
            resting.put_nowait(left)

    def _pool(self, given: "Given") -> "asyncio.Queue[Link | None]":
        name = given[b"user"] + b"\0" + given[b"database"]
        if name not in self._resting:
            self._resting[name] = asyncio.Queue()
            for _ in range(POOL):
                self._resting[name].put_nowait(None)
        return self._resting[name]

    async def _linked(self, resting: "asyncio.Queue[Link | None]", given: "Given") -> Link:
        link = await resting.get()
        if link is not None and not link.reader.at_eof():
            return link
        try:
            return await self._login(given)
        except (OSError, EOFError):
            resting.put_nowait(None)
            raise

    async def _login(self, given: "Given") -> Link:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server)
        self.links.append(writer)
        who = b"".join(b"%s\0%s\0" % (name, given[name]) for name in (b"user", b"database"))
        body = struct.pack("!i", 196608) + who + b"\0"
        writer.write(struct.pack("!i", len(body) + 4) + body)
        greeting = b""
        while (message := await _read(reader))[:1] != b"Z":
            if message[:1] == b"E":
                raise LoginError(message)
            greeting += message if message[:1] in (b"R", b"S") else b""
        return Link(reader, writer, greeting)


Given = dict[bytes, bytes]


class LoginError(Exception):
    """What the server said, as it said it."""

    def __init__(self, message: bytes) -> None:
        super().__init__("the server refuses")
        self.message = message


async def _feed(reader: asyncio.StreamReader, said: "asyncio.Queue[bytes]") -> None:
    with contextlib.suppress(OSError, EOFError):
        while True:
            said.put_nowait(await _read(reader))
    said.put_nowait(_message(b"X", b""))


async def _send(said: "asyncio.Queue[bytes]", there: asyncio.StreamWriter) -> None:
    """Returns when the client is gone."""
    while (message := await said.get())[:1] != b"X":
        there.write(message)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Returns when the transaction is over."""
    while True:
        message = await _read(reader)
        writer.write(message)
        await writer.drain()
        if message[:1] == b"Z" and message[5:] == b"I":
            return


async def _startup(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack("!i", await reader.readexactly(4))
    return await reader.readexactly(length - 4)


async def _read(reader: asyncio.StreamReader) -> bytes:
    """One message, whole."""
    head = await reader.readexactly(5)
    (length,) = struct.unpack("!i", head[1:])
    return head + await reader.readexactly(length - 4)


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


@contextlib.asynccontextmanager
async def small_pooler(server: int, *, lax: bool = False) -> AsyncGenerator[int]:
    """Its port."""
    pooler = Pooler(server, lax=lax)
    serving = await asyncio.start_server(pooler.serve, "127.0.0.1")
    try:
        yield int(serving.sockets[0].getsockname()[1])
    finally:
        serving.close()
        for writer in pooler.links:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        await serving.wait_closed()


@contextlib.asynccontextmanager
async def pgbouncer(server: int) -> AsyncGenerator[int]:
    """Its port."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None
    folder = Path(tempfile.mkdtemp(prefix="stillhere-pgbouncer-"))
    port = free_port()
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host=127.0.0.1 port={server} user=postgres\n[pgbouncer]\n"
        f"listen_addr=127.0.0.1\nlisten_port={port}\nauth_type=any\npool_mode=transaction\n"
        f"default_pool_size={POOL}\nserver_round_robin=1\nunix_socket_dir=\n"
    )
    if user := unprivileged():
        shutil.chown(folder, user)
    process = subprocess.Popen(  # noqa: ASYNC220 - it takes a moment
        [program, "-q", str(settings)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=end_with_parent,
        start_new_session=True,
        user=user,
    )
    try:
        await _until_up(port)
        yield port
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


async def _until_up(port: int) -> None:
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return
            await asyncio.sleep(0.02)


KINDS: dict[str, Callable[[int], AbstractAsyncContextManager[int]]] = {
    "small": small_pooler,
    "lax": partial(small_pooler, lax=True),
}
if shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin"):
    KINDS["pgbouncer"] = pgbouncer
