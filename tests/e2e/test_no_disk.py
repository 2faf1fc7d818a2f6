"""``stillhere run`` with a PostgreSQL on machines whose disk is of no use: nothing is written there
and nothing is missed on the next one."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.command import run
from tests.e2e.hosted import Service, service
from tests.e2e.test_run import codes
from tests.standins.telegram import TelegramStandIn

pytestmark = [pytest.mark.postgres, pytest.mark.matrix, pytest.mark.timeout(300)]

UP = 60.0
"""Seconds: what the one that was killed had leased must be over first."""
PATIENCE = 60.0


def without_disk(folder: Path) -> str:
    """A path at which nothing can be made, whoever tries."""
    folder.mkdir(exist_ok=True)
    (folder / "file").touch()
    return str(folder / "file" / "nowhere")


def written(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@asynccontextmanager
async def machine(
    folder: Path, telegram: TelegramStandIn, database: str
) -> AsyncGenerator[Service]:
    """A new one each time, with a place for the log that the test reads, and for nothing else."""
    nowhere = without_disk(folder)
    given = {
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "TELEGRAM_API_URL": telegram.url,
        "DATABASE_URL": database,
        "DRAIN_SECONDS": "0",
        **dict.fromkeys(("STILLHERE_DATA", "HOME", "TMPDIR"), nowhere),
    }
    async with service(folder, **given) as only:
        async with asyncio.timeout(UP):
            while (await only.ready())[0] != 200:  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.1)
        yield only
    assert written(folder) == {"file", "log"}


async def test_another_machine_goes_on_where_one_was_killed(
    tmp_path: Path, postgres_url: str
) -> None:
    async with TelegramStandIn() as telegram:
        ada = telegram.user(7, "Ada")

        async def sees(text: str) -> None:
            await telegram.wait_for(lambda: any(text in one for one in ada.bot_texts()), PATIENCE)

        async with machine(tmp_path / "one", telegram, postgres_url) as first:
            (code,) = codes(first.log)
            await first.ends(signal.SIGKILL)
        async with machine(tmp_path / "two", telegram, postgres_url) as second:
            assert codes(second.log) == [code]
            ada.says(f"/start {code}")
            await sees("You are my owner now")
            ada.says("/context window")
            await sees("window")
            ada.sends_document("note.txt", b"The parcel is blue.", "keep this")
            await telegram.wait_for(lambda: len(ada.bot_texts()) > 2, PATIENCE)
            ada.says("count slowly to 12")
            await sees("counting: ")
            await second.ends(signal.SIGKILL)
        async with machine(tmp_path / "three", telegram, postgres_url) as third:
            assert codes(third.log) == []
            await sees("Counted, slowly: 1, 2, 3")
            assert await third.ends(signal.SIGTERM) == 0
        ledger = await asyncio.to_thread(
            run, tmp_path, "doctor", "--ledger", DATABASE_URL=postgres_url
        )
    assert ledger.returncode == 0, ledger.stdout
    assert "Traceback" not in third.log


def test_the_terminal_needs_no_disk_either(tmp_path: Path, postgres_url: str) -> None:
    nowhere = without_disk(tmp_path)
    said = run(
        tmp_path,
        "chat",
        given="hello\n",
        DATABASE_URL=postgres_url,
        STILLHERE_DATA=nowhere,
    )
    assert said.returncode == 0, said.stderr
    assert "hello" in said.stdout.lower()
    assert written(tmp_path) == {"file"}
