"""A deploy as users have it: the release before goes on beside this one, on its tables.

The release before is taken out of git: the code before the newest revision of the data was made.
"""

import asyncio
import io
import json
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest

from storage.migrate import migrate
from storage.revisions import OURS
from tests.command import ROOT, run
from tests.e2e.hosted import Service, service
from tests.standins.telegram import TelegramStandIn
from tests.standins.telegram_updates import Webhook
from tests.standins.telegram_user import User

PATIENCE = 60.0
VERSIONS = "storage/migrations/versions"
NOT_IN_USE = "http://127.0.0.1:9"
"""Telegram is told by us, and not by each process for itself, to whom it delivers."""


def _git(*words: str) -> bytes:
    git = shutil.which("git")
    if git is None:
        pytest.skip("needs git, to take the release before out of the history")
    done = subprocess.run([git, *words], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(
            "needs the history of the release before, which a shallow clone or an archive has not"
        )
    return done.stdout


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the code that knows every revision but the newest."""
    newest = next((ROOT / VERSIONS).glob(f"{OURS.newest}_*.py")).relative_to(ROOT)
    made = _git("log", "--diff-filter=A", "--format=%H", "--", str(newest)).decode().split()
    if not made:
        pytest.skip("the newest revision of the data is not committed yet")
    archive = _git("archive", "--format=tar", f"{made[-1]}^")
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    assert not list((folder / VERSIONS).glob(f"{OURS.newest}_*"))
    return folder


async def _is_up(one: Service) -> None:
    """Its first start compiles all of its code."""
    async with asyncio.timeout(PATIENCE):
        while (await one.ready())[0] != 200:
            assert one.process.returncode is None, one.log
            await asyncio.sleep(0.1)


def _port(one: Service) -> int:
    lines = [json.loads(line) for line in one.log.splitlines() if line.startswith("{")]
    return next(line["port"] for line in reversed(lines) if line["event"] == "listening")


def _deliver_to(telegram: TelegramStandIn, one: Service) -> None:
    hook = telegram.updates.webhook
    assert hook is not None
    path = hook.url.split("/", 3)[3]
    with telegram.changes.lock:
        telegram.updates.webhook = Webhook(f"http://127.0.0.1:{_port(one)}/{path}", hook.secret)
    telegram.changes.announce()


async def _talk(telegram: TelegramStandIn, ada: User, to: Service, number: int) -> None:
    """One message, answered whichever of them does it."""
    _deliver_to(telegram, to)
    many = len(ada.bot_texts())
    ada.says(f"count slowly to {number}")
    await telegram.wait_for(lambda: _counted(number) in _said_to(ada)[many:], PATIENCE)


def _said_to(ada: User) -> list[str]:
    """Without the line that an answer was interrupted."""
    return [text.rpartition("\n\n")[2] for text in ada.bot_texts()]


def _counted(number: int) -> str:
    return f"Counted, slowly: {', '.join(map(str, range(1, number + 1)))}"


def _given(telegram: TelegramStandIn, url: str) -> dict[str, str]:
    return {
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "TELEGRAM_API_URL": telegram.url,
        "TELEGRAM_MODE": "webhook",
        "PUBLIC_URL": NOT_IN_USE,
        "ALLOWED_USERS": "telegram:7",
        "DATABASE_URL": url,
        "DRAIN_SECONDS": "2",
    }


@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_the_release_before_and_this_one_serve_side_by_side(
    tmp_path: Path, before: Path, empty_postgres_url: str
) -> None:
    old_place, new_place = tmp_path / "old", tmp_path / "new"
    old_place.mkdir()
    new_place.mkdir()
    async with TelegramStandIn() as telegram:
        ada = telegram.user(7, "Ada")
        given = _given(telegram, empty_postgres_url)
        async with service(old_place, **given, PYTHONPATH=str(before)) as old:
            await _is_up(old)
            await _talk(telegram, ada, old, 1)
            migrated = run(new_place, "migrate", **given)
            assert migrated.returncode == 0, migrated.stderr
            assert f"takes it to {OURS.newest}" in migrated.stdout
            assert "pg_dump --format=custom" in migrated.stdout
            async with service(new_place, **given) as new:
                await _is_up(new)
                for number, to in ((2, new), (1, old), (3, old), (2, new), (1, new)):
                    await _talk(telegram, ada, to, number)
                _deliver_to(telegram, old)
                ada.says("count slowly to 4")
                ada.says("hello")
                await telegram.wait_for(lambda: not telegram.updates.pending, PATIENCE)
                _deliver_to(telegram, new)
                old.process.send_signal(signal.SIGTERM)
                assert await asyncio.wait_for(old.process.wait(), PATIENCE) == 0
                await telegram.wait_for(lambda: _counted(4) in _said_to(ada), PATIENCE)
                await telegram.wait_for(
                    lambda: any("hello" in one.lower() for one in ada.bot_texts()), PATIENCE
                )
                ledger = run(new_place, "doctor", "--ledger", **given)
                assert (ledger.returncode, "balanced" in ledger.stdout) == (0, True), ledger.stdout
        counted = [one for one in _said_to(ada) if one.startswith("Counted")]
        assert counted == [_counted(number) for number in (1, 2, 1, 3, 2, 1, 4)]
        for log in (old.log, new.log):
            assert "Traceback" not in log
            assert "set aside" not in log


@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_the_release_before_comes_back(
    tmp_path: Path, before: Path, empty_postgres_url: str
) -> None:
    async with TelegramStandIn() as telegram:
        ada = telegram.user(7, "Ada")
        given = _given(telegram, empty_postgres_url)
        await migrate(empty_postgres_url)
        await _roll_back(telegram, ada, tmp_path, before, given)


async def _roll_back(
    telegram: TelegramStandIn, ada: User, place: Path, before: Path, given: dict[str, str]
) -> None:
    """A release that cannot read what newer revisions say of it says how to take them back."""
    given = given | {"PYTHONPATH": str(before)}
    if not (before / "storage/revisions.py").exists():
        async with service(place, **given) as refused:
            assert await asyncio.wait_for(refused.process.wait(), PATIENCE) == 78
            assert f"The database is at revision {OURS.newest}" in refused.log
        back = run(place, "migrate", "--to", OURS.names[-2], **given | {"PYTHONPATH": str(ROOT)})
        assert (back.returncode, "say --yes" in back.stderr) == (1, True)
        given_here = given | {"PYTHONPATH": str(ROOT)}
        back = run(place, "migrate", "--to", OURS.names[-2], "--yes", **given_here)
        assert back.returncode == 0, back.stderr
        assert f"The data is at revision {OURS.names[-2]} now" in back.stdout
    async with service(place, **given) as again:
        await _is_up(again)
        await _talk(telegram, ada, again, 2)
