"""Poolers in transaction mode for tests: the real PgBouncer where the machine has it, and a small one
that deals with what matters of it: a client has a session of the server for one transaction.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import AsyncGenerator
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

    def __init__(self, server: int) -> None:
        self._server = server
        self._resting: dict[bytes, asyncio.Queue[Link | None]] = {}
        self.transactions = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            await self._serve(reader, writer)
        writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await _startup(reader)
        while struct.unpack("!i", asked[:4])[0] == _SSL:
            writer.write(b"N")
            asked = await _startup(reader)
        if struct.unpack("!i", asked[:4])[0] == _CANCEL:
            return
        words = asked[4:].split(b"\0")
        given = dict(zip(words[0::2], words[1::2], strict=False))
        for name in given:
            if name and name.decode().lower() not in _ACCEPTED:
                text = f"unsupported startup parameter: {name.decode()}"
                writer.write(_message(b"E", b"SFATAL\0C08P01\0M" + text.encode() + b"\0\0"))
                await writer.drain()
                return
        resting = await self._pool(given[b"user"], given[b"database"])
        link = await self._linked(resting, given)
        writer.write(link.greeting + _message(b"K", secrets.token_bytes(8)) + _message(b"Z", b"I"))
        resting.put_nowait(link)
        while True:
            await self._transaction(await _read(reader), reader, writer, resting, given)

    async def _pool(self, user: bytes, database: bytes) -> asyncio.Queue[Link | None]:
        name = user + b"\0" + database
        if name not in self._resting:
            self._resting[name] = asyncio.Queue()
            for _ in range(POOL):
                self._resting[name].put_nowait(None)
        return self._resting[name]

    async def _linked(self, resting: asyncio.Queue[Link | None], given: dict[bytes, bytes]) -> Link:
        link = await resting.get()
        if link is not None and not link.reader.at_eof():
            return link
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._server)
            who = b"".join(b"%s\0%s\0" % (n, given[n]) for n in (b"user", b"database"))
            body = struct.pack("!i", 196608) + who + b"\0"
            writer.write(struct.pack("!i", len(body) + 4) + body)
            greeting = b""
            while (message := await _read(reader))[:1] != b"Z":
                greeting += message if message[:1] in (b"R", b"S") else b""
        except (OSError, EOFError):
            resting.put_nowait(None)
            raise
        return Link(reader, writer, greeting)

    async def _transaction(
        self,
        first: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        resting: asyncio.Queue[Link | None],
        given: dict[bytes, bytes],
    ) -> None:
        """Until the server says that it is over; a session that is left in the middle is ended."""
        if first[:1] == b"X":
            raise EOFError
        link: Link | None = await self._linked(resting, given)
        assert link is not None
        self.transactions += 1
        there, back = asyncio.Queue[bytes](), link
        there.put_nowait(first)
        asked = asyncio.create_task(self._ask(reader, there))
        answered = asyncio.create_task(self._answer(back, there, writer))
        try:
            done, _ = await asyncio.wait((asked, answered), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except (OSError, EOFError):
            link.writer.transport.abort()
            link = None
            raise
        finally:
            for task in (asked, answered):
                task.cancel()
            await asyncio.gather(asked, answered, return_exceptions=True)
            resting.put_nowait(link)

    @staticmethod
    async def _ask(reader: asyncio.StreamReader, there: "asyncio.Queue[bytes]") -> None:
        """A message that is read in part when the transaction ends would be lost: it is not, since
        who talks to us waits for each answer."""
        while True:
            there.put_nowait(await _read(reader))

    @staticmethod
    async def _answer(
        link: Link, there: "asyncio.Queue[bytes]", writer: asyncio.StreamWriter
    ) -> None:
        sending = asyncio.create_task(_send(link, there))
        try:
            while True:
                message = await _read(link.reader)
                writer.write(message)
                await writer.drain()
                if message[:1] == b"Z" and message[5:] == b"I":
                    return
        finally:
            sending.cancel()


async def _send(link: Link, there: "asyncio.Queue[bytes]") -> None:
    while True:
        link.writer.write(await there.get())


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
async def small_pooler(server: int) -> AsyncGenerator[int]:
    """Its port."""
    pooler = Pooler(server)
    serving = await asyncio.start_server(pooler.serve, "127.0.0.1")
    try:
        yield int(serving.sockets[0].getsockname()[1])
    finally:
        serving.close()


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
    process = subprocess.Popen(
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


KINDS = {"small": small_pooler}
if shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin"):
    KINDS["pgbouncer"] = pgbouncer
