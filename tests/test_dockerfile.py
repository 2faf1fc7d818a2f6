"""The image, without an engine: what the Dockerfile says, and its steps carried out."""

import asyncio
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.dockerfile import Ignore, Machine, Stage, context_of, read_stages
from tests.e2e.test_run import codes, within
from tests.postgres import PostgresServer
from tests.standins.telegram import TelegramStandIn

ROOT: Final = Path(__file__).parents[1]
USER: Final = 10001
PATIENCE: Final = 60.0


@pytest.fixture(scope="module")
def stages() -> list[Stage]:
    return read_stages((ROOT / "Dockerfile").read_text())


def tracked() -> list[str]:
    git = shutil.which("git") or "git"
    listed = subprocess.run([git, "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def test_both_stages_have_the_projects_python(stages: list[Stage]) -> None:
    wanted = (ROOT / ".python-version").read_text().strip()
    assert [stage.base for stage in stages] == [f"python:{wanted}-slim"] * 2


def test_it_installs_what_is_locked_and_nothing_else(stages: list[Stage]) -> None:
    installs = [one.text for one in stages[0].of("RUN") if "pip install" in one.text]
    locked, ours = installs
    assert "--require-hashes -r requirements.txt" in locked
    assert "--only-binary=:all:" in locked
    assert "--no-deps --no-build-isolation ." in ours


def test_the_last_stage_is_a_python_and_the_result(stages: list[Stage]) -> None:
    last = stages[-1]
    assert [one.text for one in last.of("COPY")] == ["--from=build /venv /venv"]
    assert not re.search(r"apt-get|apk|pip", " ".join(one.text for one in last.of("RUN")))
    removed = next(one.text for one in stages[0].of("RUN") if "uninstall" in one.text)
    assert {"pip", "setuptools"} <= set(removed.split())


def test_nobody_is_root_and_signals_reach_the_process(stages: list[Stage]) -> None:
    last = stages[-1]
    assert last.last("USER").text == f"{USER}:{USER}"
    assert last.last("STOPSIGNAL").text == "SIGTERM"
    # Not by a shell, which would keep the signal to itself.
    assert last.last("CMD").text == '["python", "-m", "bots", "run"]'
    assert last.of("ENTRYPOINT") == []
    names = [one.name for one in last.instructions]
    assert names.index("USER") > max(n for n, name in enumerate(names) if name in ("RUN", "COPY"))


def test_it_declares_no_volume_which_railway_refuses(stages: list[Stage]) -> None:
    assert [one for stage in stages for one in stage.of("VOLUME")] == []


def test_the_builder_is_sent_what_the_dockerfile_copies_and_no_more(stages: list[Stage]) -> None:
    sent = context_of(ROOT, tracked())
    copied = {
        word.rstrip("/")
        for one in stages[0].of("COPY")
        for word in one.words[:-1]
        if not word.startswith("--")
    }
    assert {name.partition("/")[0] for name in sent} == copied
    assert all(name in sent for name in tracked() if name.startswith(("bots/", "storage/")))


@pytest.mark.parametrize(
    "name", [".env", ".git/config", "data/stillhere.db", "tests/x.py", "bots/__pycache__/a.pyc"]
)
def test_no_secret_and_no_cache_is_sent(name: str) -> None:
    assert Ignore((ROOT / ".dockerignore").read_text())(name)


def test_an_ignored_file_may_be_taken_back() -> None:
    ignored = Ignore("# all\n*\n!a\n**/x?.pyc\na/b*\n!a/big\n")
    names = ("b", "a", "a/c", "a/c/x1.pyc", "x1.pyc", "a/c/x.pyc", "a/beta", "a/big", "a/big/c")
    kept = ["a", "a/c", "a/c/x.pyc", "a/big", "a/big/c"]
    assert [name for name in names if not ignored(name)] == kept


def test_a_step_that_needs_an_engine_is_refused(tmp_path: Path) -> None:
    machine = Machine(tmp_path, USER)
    with pytest.raises(ValueError, match="/etc is not a folder of the image"):
        machine.here("cp a /etc/passwd")
    with pytest.raises(ValueError, match="ADD is not known"):
        machine.carry_out(read_stages("FROM a\nADD b c\n"), tmp_path)


@pytest.fixture(scope="module")
def image(stages: list[Stage]) -> Iterator[Machine]:
    """Its steps carried out by its own user, from what a builder is sent."""
    folder = Path(tempfile.mkdtemp(prefix="stillhere-image-"))
    context = folder / "context"
    for name in context_of(ROOT, tracked()):
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, context / name)
    began = time.monotonic()
    try:
        machine = Machine(folder, USER)
        machine.carry_out(stages, context)
        sys.stdout.write(f"\nbuilt in {time.monotonic() - began:.0f} s\n")
        yield machine
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def healthy(port: int) -> float:
    """Seconds until ``/healthz`` said so."""
    began = time.monotonic()
    async with httpx.AsyncClient(trust_env=False) as client:
        while time.monotonic() - began < PATIENCE:
            try:
                answer = await client.get(f"http://127.0.0.1:{port}/healthz")
            except httpx.TransportError:
                await asyncio.sleep(0.05)
                continue
            assert (answer.status_code, answer.text) == (200, "ok\n")
            return time.monotonic() - began
    pytest.fail("/healthz did not answer")


@pytest.mark.matrix
@pytest.mark.postgres
@pytest.mark.timeout(900)
async def test_the_image_serves_from_the_claim_code_to_sigterm(
    stages: list[Stage], image: Machine, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    last = stages[-1]
    port = free_port()
    log = tmp_path / "log"
    async with TelegramStandIn() as telegram:
        ada = telegram.user(7, "Ada")
        name = await postgres_server.new_database()
        given = within(telegram) | {
            "DATABASE_URL": postgres_server.url(name),
            "PORT": str(port),
            "MODEL": "demo",
        }
        assert "up to date" in image.run("python", "-m", "bots", "migrate", **given)
        process = image.start(last.last("CMD").words, log, **given)
        try:
            sys.stdout.write(f"healthy after {await healthy(port):.1f} s\n")
            _, _, check = last.last("HEALTHCHECK").text.partition(" CMD ")
            words = read_stages(f"FROM a\nCMD {check}\n")[0].last("CMD").words
            image.run(*words, **given)
            await telegram.wait_for(lambda: codes(log.read_text()), PATIENCE)
            ada.says(f"/start {codes(log.read_text())[0]}")
            ada.says("hello")
            await telegram.wait_for(lambda: len(ada.bot_texts()) >= 2, PATIENCE)
            assert "You are my owner now" in ada.bot_texts()[0]
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.wait()
    assert "Traceback" not in log.read_text()
    with pytest.raises(AssertionError, match="ended with 1"):
        image.run(*words, **given)


@pytest.mark.matrix
@pytest.mark.timeout(900)
def test_the_image_has_its_bytecode_and_no_tool_that_builds(image: Machine) -> None:
    said = image.run(
        "python",
        "-c",
        "import importlib.util as u, bots.app, sys, pathlib\n"
        "print([name for name in ('pip', 'setuptools') if u.find_spec(name)])\n"
        "lib = pathlib.Path(bots.app.__file__).parents[1]\n"
        "bare = [s for p in ('bots', 'core', 'litellm') for s in (lib / p).rglob('*.py')"
        " if not pathlib.Path(u.cache_from_source(s)).exists()]\n"
        "print(len(bare), lib.name)\n",
    )
    assert said == "[]\n0 site-packages\n"
