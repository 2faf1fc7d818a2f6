"""``stillhere run`` as a process of its own, with a port and a log; it tests nothing itself."""

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.bots.life import eventually
from tests.command import command, surroundings

PATIENCE = 20.0


class Service:
    """One life of the process."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, port: int) -> None:
        self.process = process
        self._log = log
        self._url = f"http://127.0.0.1:{port}"

    @property
    def log(self) -> str:
        return self._log.read_text()

    async def ready(self) -> tuple[int, dict[str, Any]]:
        async with httpx.AsyncClient(base_url=self._url, trust_env=False) as client:
            try:
                answer = await client.get("/readyz")
            except httpx.TransportError:
                return 0, {}
            return answer.status_code, answer.json()

    async def page(self) -> str:
        """As everyone sees it who knows the address."""
        async with httpx.AsyncClient(base_url=self._url, trust_env=False) as client:
            return (await client.get("/")).text

    async def is_up(self) -> None:
        async def up() -> bool:
            return (await self.ready())[0] == 200

        await eventually(up)

    async def waits_for_its_database(self) -> bool:
        code, detail = await self.ready()
        return code == 503 and "not up yet" in detail["database"]

    async def ends(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), PATIENCE)


@asynccontextmanager
async def service(folder: Path, **variables: str) -> AsyncGenerator[Service]:
    """Killed in the end, if it still runs."""
    port = _free()
    given = {"PORT": str(port), "LOG_FORMAT": "json", **variables}
    log = folder / "log"
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            *command("run"), cwd=folder, env=surroundings(folder, **given), stdout=out, stderr=out
        )
    try:
        yield Service(process, log, port)
    finally:
        for kill in [process.kill] * (process.returncode is None):
            kill()
        await process.wait()


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
