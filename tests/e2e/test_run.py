"""``stillhere run`` as its host and its owner have it: signals, exit codes, health, the code."""

import asyncio
import json
import re
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.bots.life import eventually
from tests.command import command, run, surroundings
from tests.postgres import running_postgres
from tests.standins.telegram import TelegramStandIn

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
async def service(
    folder: Path, telegram: TelegramStandIn, **variables: str
) -> AsyncGenerator[Service]:
    port = _free()
    given = {
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "TELEGRAM_API_URL": telegram.url,
        "PORT": str(port),
        "LOG_FORMAT": "json",
        **variables,
    }
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


def codes(log: str) -> list[str]:
    return re.findall(r"/start ([0-9a-f]{20})", log)


async def test_from_the_claim_code_to_the_second_signal(tmp_path: Path) -> None:
    async with TelegramStandIn() as telegram:
        ada = telegram.user(7, "Ada")

        async def sees(text: str) -> None:
            await telegram.wait_for(lambda: any(text in one for one in ada.bot_texts()), PATIENCE)

        async with service(tmp_path, telegram) as first:
            await first.is_up()
            assert await first.ends(signal.SIGTERM) == 0
        async with service(tmp_path, telegram, DRAIN_SECONDS="60") as second:
            await second.is_up()
            told = codes(second.log)
            assert (len(told), len(set(told))) == (2, 1)
            ada.says("hello")
            await sees("private assistant")
            ada.says(f"/start {told[0]}")
            await sees("You are my owner now")
            ada.says("count slowly to 90")
            await sees("counting: 1 of 90")
            second.process.send_signal(signal.SIGTERM)

            async def stopping() -> bool:
                code, detail = await second.ready()
                return code == 503 and detail["state"] == "stopping"

            await eventually(stopping)
            assert await second.ends(signal.SIGTERM) == 1
        async with service(tmp_path, telegram, DRAIN_SECONDS="0") as third:
            await third.is_up()
            assert len(codes(third.log)) == 2
            await telegram.wait_for(
                lambda: sum("counting" in one for one in ada.bot_texts()) == 1, PATIENCE
            )
            ada.says("/stop")
            await sees("Stopped at step 1.")
            assert await third.ends(signal.SIGINT) == 0
        lines = [json.loads(line) for line in third.log.splitlines()]
    assert telegram.token.partition(":")[2] not in third.log
    assert "Traceback" not in third.log
    assert {"listening", "ready", "stopped"} <= {line["event"] for line in lines}
    doctor = run(
        tmp_path,
        "doctor",
        TELEGRAM_API_URL=telegram.url,
        TELEGRAM_BOT_TOKEN=telegram.token,
    )
    assert "someone owns this bot" in doctor.stdout
    assert re.search(r"telegram: .*; last sign of life 20\d\d-", doctor.stdout)


async def test_a_turn_that_ends_in_time_is_answered_before_the_process_ends(tmp_path: Path) -> None:
    async with TelegramStandIn() as telegram:
        ada = telegram.user(7, "Ada")
        async with service(tmp_path, telegram, ALLOWED_USERS="telegram:7") as only:
            await only.is_up()
            ada.says("count slowly to 3")
            await telegram.wait_for(lambda: ada.bot_texts(), PATIENCE)
            assert await only.ends(signal.SIGTERM) == 0
        assert ada.bot_texts() == ["Counted, slowly: 1, 2, 3"]


@pytest.mark.postgres
async def test_a_database_that_comes_up_late(tmp_path: Path) -> None:
    with running_postgres() as server:
        server.stop()
        async with TelegramStandIn() as telegram:
            ada = telegram.user(7, "Ada")
            given = {"DATABASE_URL": server.url(), "ALLOWED_USERS": "telegram:7"}
            async with service(tmp_path, telegram, **given) as first:
                await eventually(first.waits_for_its_database)
                assert await first.ends(signal.SIGTERM) == 0
            ada.says("hello")
            async with service(tmp_path, telegram, **given) as second:
                await eventually(second.waits_for_its_database)
                await asyncio.to_thread(server.start)
                await second.is_up()
                await telegram.wait_for(lambda: ada.bot_texts(), PATIENCE)
                assert await second.ends(signal.SIGTERM) == 0
    assert "Traceback" not in second.log
