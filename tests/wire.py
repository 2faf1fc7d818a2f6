"""A wire to a server that can be slow, or swallow all that is sent; it changes not one byte."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class Wire:
    def __init__(self, port: int) -> None:
        self._port = port
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.delay = 0.0
        """Seconds that each piece of an answer is late."""
        self.port = 0

    def swallow(self) -> None:
        """From now on nothing comes through, and nobody is told; not on the connections there are,
        nor on new ones."""
        self._open.clear()

    def carry(self) -> None:
        """New connections only: what was swallowed is lost, and so are those who sent it."""
        for task in self._tasks:
            task.cancel()
        self._open.set()

    async def _plug(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        there: asyncio.StreamWriter | None = None
        with suppress(ConnectionError, asyncio.CancelledError):
            back, there = await asyncio.open_connection("127.0.0.1", self._port)
            async with asyncio.TaskGroup() as group:
                ways = [
                    group.create_task(self._carry(reader, there, late=False)),
                    group.create_task(self._carry(back, writer, late=True)),
                ]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
        for end in filter(None, (writer, there)):
            end.transport.abort()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, late: bool
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if late:
                    await asyncio.sleep(self.delay)
                await self._open.wait()
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def wire(port: int) -> AsyncGenerator[Wire]:
    """To that port of this machine."""
    made = Wire(port)
    server = await asyncio.start_server(made._plug, "127.0.0.1")  # pyright: ignore[reportPrivateUsage]
    made.port = int(server.sockets[0].getsockname()[1])
    try:
        yield made
    finally:
        server.close()
        made.carry()
        await server.wait_closed()
