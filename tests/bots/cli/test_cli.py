"""The command line from outside: exit codes, and words that a person can act on."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from storage.revisions import OURS
from tests.command import command, run, surroundings
from tests.standins.openai import OpenAIStandIn
from tests.standins.telegram import TelegramStandIn

HEAVY = (
    "litellm",
    "openai",
    "telegram",
    "slack_bolt",
    "slack_sdk",
    "discord",
    "sqlalchemy",
    "alembic",
    "apscheduler",
    "pydantic",
    "uvicorn",
    "prompt_toolkit",
    "prometheus_client",
    "asyncpg",
)
PROBE = """
import sys, time
sys.argv = ["stillhere", "--help"]
from bots.cli import main
try:
    main()
except SystemExit as end:
    print(repr(end.code))
print(time.process_time())
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
KEY = "agent:main:console:dm:"


def test_help_is_quick_and_imports_nothing_heavy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        cwd=tmp_path,
        env=surroundings(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    *screen, code, seconds, modules = done.stdout.splitlines()
    text = "\n".join(screen)
    assert all(word in text for word in ("run", "chat", "migrate", "doctor", "sessions"))
    assert code == "0"
    assert set(modules.split()) & set(HEAVY) == set()
    assert float(seconds) < 1.0


@pytest.mark.parametrize("name", ["run", "chat", "migrate", "doctor", "sessions"])
def test_each_command_says_what_it_does(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, name, "--help")
    assert done.returncode == 0
    assert f"stillhere {name}" in done.stdout or f"bots {name}" in done.stdout


def test_a_word_that_is_no_command_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "serve")
    assert done.returncode == 2
    assert "No such command 'serve'" in done.stderr


def test_all_faults_are_told_at_once_with_exit_code_78(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("BUSY_MODE=later\nPORT=http\n")
    done = run(
        tmp_path,
        "run",
        DATABASE_URL="mysql://ada:hush@db/bot",
        TELEGRAM_BOT_TOKEN="nonsense",
        TELEGRAM_MODE="webhook",
        ALLOWED_USERS="123",
    )
    assert done.returncode == 78
    head, *faults = done.stderr.splitlines()
    assert head == "Wrong configuration:"
    assert [fault.split()[0] for fault in faults] == [
        "PORT",
        "ALLOWED_USERS",
        "BUSY_MODE",
        "DATABASE_URL",
        "TELEGRAM_BOT_TOKEN",
        "TELEGRAM_MODE=webhook",
    ]
    assert "hush" not in done.stderr
    assert "nonsense" not in done.stderr


def test_without_a_platform_it_says_what_to_set(tmp_path: Path) -> None:
    done = run(tmp_path, "run")
    assert done.returncode == 78
    assert re.search(r"set .*\bTELEGRAM_BOT_TOKEN\b.* \(see \.env\.example\)", done.stderr)
    assert "`stillhere chat`" in done.stderr


def test_a_port_that_is_taken_is_a_wrong_setting(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(tmp_path, "run", PORT=str(port), TELEGRAM_BOT_TOKEN="123456:token-of-a-bot")
    assert done.returncode == 78
    assert f"PORT: cannot listen on {port}" in done.stderr


def test_a_folder_that_cannot_be_made_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place = str(tmp_path / "file" / "data")
    for word in ("chat", "run"):
        done = run(tmp_path, word, STILLHERE_DATA=place, TELEGRAM_BOT_TOKEN="123456:token-of-a-bot")
        assert done.returncode == 78
        assert f"STILLHERE_DATA: the folder {place} cannot be made" in done.stderr


def test_a_database_that_does_not_answer_is_worth_another_try(tmp_path: Path) -> None:
    address = f"postgres://ada:hush@127.0.0.1:{_free()}/bot"
    done = run(tmp_path, "migrate", "--wait", "1", DATABASE_URL=address)
    assert done.returncode == 75
    assert "Waiting for the database; again in 1 s: ConnectionRefusedError" in done.stderr
    assert "The database does not answer" in done.stderr
    assert "hush" not in done.stderr


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


UP_TO_DATE = f"The database is up to date (data revision {OURS.newest}).\n"


def test_migrate_creates_the_database_and_may_be_repeated(tmp_path: Path) -> None:
    for _ in range(2):
        done = run(tmp_path, "migrate")
        assert (done.returncode, done.stdout) == (0, UP_TO_DATE)
    assert (tmp_path / "data" / "stillhere.db").exists()


class Chat:
    """``stillhere chat`` that runs until its pipe is closed."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            command("chat"),
            cwd=folder,
            env=surroundings(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def says(self, text: str) -> None:
        stdin = _there(self._process.stdin)
        stdin.write(f"{text}\n")
        stdin.flush()

    def sees(self, text: str) -> None:
        assert any(text in line for line in _there(self._process.stdout)), f"no {text!r}"

    def ends(self) -> int:
        _there(self._process.stdin).close()
        _there(self._process.stdout).close()
        return self._process.wait(timeout=30)


def _there(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on whose data a chat is running, with an exchange in it."""
    folder = tmp_path_factory.mktemp("chat")
    chat = Chat(folder)
    chat.says("my name is Ada")
    chat.sees("Nice to meet you")
    yield folder
    assert chat.ends() == 0


@pytest.fixture(scope="module")
def key(place: Path) -> str:
    done = run(place, "sessions", "list")
    found = re.fullmatch(
        rf"({KEY}\S+)  \d{{8}}_\d{{6}}_[0-9a-f]{{8}}  (\d+) events  idle  .* UTC\n", done.stdout
    )
    assert found, done
    return found[1]


def test_sessions_are_listed_while_the_service_runs(place: Path, key: str) -> None:
    assert key.startswith(KEY)
    assert run(place, "sessions", "list", "--prefix", "agent:main:telegram").stdout == ""


def test_a_session_is_shown_as_it_is_and_as_it_was(place: Path, key: str) -> None:
    now = json.loads(run(place, "sessions", "show", key).stdout)
    then = json.loads(run(place, "sessions", "show", key, "--at", "1").stdout)
    assert now["seq"] > then["seq"] == 1
    assert now["session"]["session_id"] == then["session"]["session_id"]
    assert now["turns"] == 1


def test_the_whole_log_is_one_event_a_line(place: Path, key: str) -> None:
    lines = [json.loads(line) for line in run(place, "sessions", "events", key).stdout.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    names = [line["event"]["type"] for line in lines]
    assert names[:2] == ["SessionOpened", "MessageReceived"]
    assert names[-1] == "TurnFinished"


def test_a_session_goes_into_files_while_the_service_runs_and_is_checked(
    place: Path, key: str, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    done = run(place, "sessions", "export", key, str(target), "--gzip")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"{re.escape(str(target))}: \d+ events of {re.escape(key)}\n", done.stdout)
    done = run(tmp_path, "sessions", "check", str(target))
    assert (done.returncode, done.stderr) == (0, "")
    assert " is sound: " in done.stdout
    done = run(place, "sessions", "export", key, str(target))
    assert (done.returncode, done.stdout) == (1, "")
    assert "is there already" in done.stderr
    (target / "snapshot.json").write_text("{}")
    done = run(tmp_path, "sessions", "check", str(target))
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not sound: snapshot.json: it is not the file that was exported" in done.stderr


def test_an_unknown_session_is_not_exported(place: Path, key: str, tmp_path: Path) -> None:
    done = run(place, "sessions", "export", f"{key}0", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "There is no conversation" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("word", ["show", "events"])
def test_a_key_that_is_not_known_is_said(word: str, place: Path) -> None:
    done = run(place, "sessions", word, "agent:main:console:dm:nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert "There is no conversation agent:main:console:dm:nobody" in done.stderr
    assert "`stillhere sessions list`" in done.stderr


def test_an_event_that_is_not_there_yet_is_said(place: Path, key: str) -> None:
    done = run(place, "sessions", "show", key, "--at", "999")
    assert done.returncode == 1
    assert re.search(r"has no event 999 yet; its newest is \d+", done.stderr)


def test_the_doctor_looks_while_the_service_runs(place: Path) -> None:
    done = run(place, "doctor")
    assert done.returncode == 0
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        "ok   settings",
        "ok   database",
        "ok   revision",
        "ok   process",
        "ok   ledger",
        "ok   owner",
        "ok   model",
        "ok   discord",
        "ok   slack",
        "ok   telegram",
    ]
    assert "1 messages taken, 0 not delivered" in done.stdout
    assert re.search(r"owner: nobody owns this bot yet; send it `/start [0-9a-f]{20}`", done.stdout)
    assert "not set up (TELEGRAM_BOT_TOKEN is not set)" in done.stdout


def test_without_a_database_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    done = run(tmp_path, "sessions", "list")
    assert done.returncode == 78
    assert "there is no database at" in done.stderr


def test_the_doctor_says_what_is_wrong_and_the_remedy(tmp_path: Path) -> None:
    done = run(tmp_path, "doctor", TELEGRAM_BOT_TOKEN="nonsense", TELEGRAM_MODE="push")
    assert done.returncode == 1
    bad = [line for line in done.stdout.splitlines() if line.startswith("BAD  ")]
    assert [line.split()[1] for line in bad] == ["database:", "telegram:"]
    assert "`stillhere migrate` creates it" in bad[0]
    assert "copy it from @BotFather" in bad[1]
    assert "TELEGRAM_MODE must be" in bad[1]


def test_the_doctor_tells_every_wrong_setting(tmp_path: Path) -> None:
    done = run(tmp_path, "doctor", BUSY_MODE="later", DATABASE_URL="mysql://x")
    assert done.returncode == 1
    assert [line.split()[:3] for line in done.stdout.splitlines()] == [
        ["BAD", "settings:", "BUSY_MODE"],
        ["BAD", "settings:", "DATABASE_URL"],
    ]


def test_the_doctor_asks_telegram_whether_it_knows_the_token(tmp_path: Path) -> None:
    with TelegramStandIn() as telegram:
        known = {"TELEGRAM_API_URL": telegram.url, "TELEGRAM_BOT_TOKEN": telegram.token}
        run(tmp_path, "migrate")
        good = run(tmp_path, "doctor", **known)
        telegram.revoke_token()
        refused = run(tmp_path, "doctor", **known)
        calls = {call.method for call in telegram.calls_of("getMe", "getUpdates", "setWebhook")}
    away = run(tmp_path, "doctor", **known)
    assert calls == {"getMe"}
    assert good.returncode == 0
    assert "ok   telegram: the token is good" in good.stdout
    assert "no sign of life noted yet" in good.stdout
    assert (refused.returncode, away.returncode) == (1, 1)
    assert "BAD  telegram: Telegram refuses TELEGRAM_BOT_TOKEN" in refused.stdout
    assert "BAD  telegram: Telegram is out of reach" in away.stdout
    assert "stand-in-token" not in refused.stdout + away.stdout


def test_an_owner_is_taken_back_and_the_old_code_is_worth_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "owner").returncode == 78
    fresh = [run(tmp_path, "owner", "--reset").stdout for _ in range(2)]
    codes = [re.findall(r"/start ([0-9a-f]{20})$", text.strip()) for text in fresh]
    assert codes[0] != codes[1]
    shown = run(tmp_path, "owner").stdout
    assert shown == fresh[1]


def test_the_bot_is_not_taken_back_under_a_running_process(place: Path) -> None:
    done = run(place, "owner", "--reset")
    assert done.returncode == 78
    assert "another process" in done.stderr


def test_the_doctor_names_what_is_missing_for_a_real_model(tmp_path: Path) -> None:
    run(tmp_path, "migrate")
    done = run(tmp_path, "doctor", MODEL="")
    assert done.returncode == 0
    assert "ok   model: MODEL is not set and there is no key of a vendor" in done.stdout
    assert "Set the key of a vendor, such as OPENAI_API_KEY." in done.stdout


def test_the_doctor_asks_the_model(tmp_path: Path) -> None:
    run(tmp_path, "migrate")
    with OpenAIStandIn(api_key="another") as model:
        done = run(
            tmp_path,
            "doctor",
            MODEL="openai/gpt-test",
            OPENAI_API_KEY="sk-hush-hush",
            OPENAI_API_BASE=f"{model.url}/v1",
        )
    assert done.returncode == 1
    assert re.search(
        r"BAD  model: openai/gpt-test: .*; openai refuses the key in OPENAI_API_KEY", done.stdout
    )
    assert "hush" not in done.stdout + done.stderr
