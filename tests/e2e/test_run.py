"""``stillhere run`` as its host and its owner have it: signals, exit codes, health, the code."""

import asyncio
import json
import re
import signal
from pathlib import Path

import pytest

from tests.bots.life import eventually
from tests.command import run
from tests.e2e.hosted import PATIENCE, service
from tests.postgres import running_postgres
from tests.standins.telegram import TelegramStandIn


def within(telegram: TelegramStandIn) -> dict[str, str]:
    return {"TELEGRAM_BOT_TOKEN": telegram.token, "TELEGRAM_API_URL": telegram.url}


def codes(log: str) -> list[str]:
    return re.findall(r"/start ([0-9a-f]{20})", log)


async def test_from_the_claim_code_to_the_second_signal(tmp_path: Path) -> None:
    async with TelegramStandIn() as telegram:
        ada = telegram.user(7, "Ada")

        async def sees(text: str) -> None:
            await telegram.wait_for(lambda: any(text in one for one in ada.bot_texts()), PATIENCE)

        async with service(tmp_path, **within(telegram)) as first:
            await first.is_up()
            assert await first.ends(signal.SIGTERM) == 0
        async with service(tmp_path, **within(telegram), DRAIN_SECONDS="60") as second:
            await second.is_up()
            told = codes(second.log)
            assert (len(told), len(set(told))) == (2, 1)
            assert codes(await second.page()) == [told[0]]
            assert f"?start={told[0]}" in await second.page()
            ada.says("hello")
            await sees("private assistant")
            ada.says(f"/start {told[0]}")
            await sees("You are my owner now")
            assert told[0] not in await second.page()
            await sees("This is how I am set up")
            ada.says("count slowly to 90")
            await sees("counting: ")
            second.process.send_signal(signal.SIGTERM)

            async def stopping() -> bool:
                code, detail = await second.ready()
                return code == 503 and detail["state"] == "stopping"

            await eventually(stopping)
            assert await second.ends(signal.SIGTERM) == 1
        async with service(tmp_path, **within(telegram), DRAIN_SECONDS="0") as third:
            await third.is_up()
            assert len(codes(third.log)) == 2
            await telegram.wait_for(
                lambda: sum("counting" in one for one in ada.bot_texts()) == 1, PATIENCE
            )
            ada.says("/stop")
            await sees("Stopped at step 1.")
            assert sum("This is how I am set up" in one for one in ada.bot_texts()) == 1
            assert await third.ends(signal.SIGINT) == 0
        lines = [json.loads(line) for line in third.log.splitlines()]
    assert telegram.token.partition(":")[2] not in third.log
    assert "Traceback" not in third.log
    assert {"listening", "ready", "stopped"} <= {line["event"] for line in lines}
    doctor = run(tmp_path, "doctor", **within(telegram))
    assert "someone owns this bot" in doctor.stdout
    assert re.search(r"telegram: .*; last sign of life 20\d\d-", doctor.stdout)


async def test_a_turn_that_ends_in_time_is_answered_before_the_process_ends(tmp_path: Path) -> None:
    async with TelegramStandIn() as telegram:
        ada = telegram.user(7, "Ada")
        async with service(tmp_path, **within(telegram), ALLOWED_USERS="telegram:7") as only:
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
            given = within(telegram) | {"DATABASE_URL": server.url(), "ALLOWED_USERS": "telegram:7"}
            async with service(tmp_path, **given) as first:
                await eventually(first.waits_for_its_database)
                assert await first.ends(signal.SIGTERM) == 0
            ada.says("hello")
            async with service(tmp_path, **given) as second:
                await eventually(second.waits_for_its_database)
                await asyncio.to_thread(server.start)
                await second.is_up()
                await telegram.wait_for(lambda: ada.bot_texts(), PATIENCE)
                assert await second.ends(signal.SIGTERM) == 0
    assert "Traceback" not in second.log
