"""``stillhere slack manifest`` from outside: something to paste, or what is missing."""

import json
from pathlib import Path

from tests.command import run


def test_the_manifest_can_be_pasted(tmp_path: Path) -> None:
    done = run(tmp_path, "slack", "manifest", "--name", "Ada’s bot")
    made = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert made["display_information"]["name"] == "Ada’s bot"
    assert made["settings"]["socket_mode_enabled"]
    assert "stop" in made["features"]["slash_commands"][0]["usage_hint"]


def test_events_over_http_need_an_address(tmp_path: Path) -> None:
    done = run(tmp_path, "slack", "manifest", "--http")
    assert (done.returncode, done.stdout) == (78, "")
    assert "PUBLIC_URL" in done.stderr
    done = run(tmp_path, "slack", "manifest", "--http", PUBLIC_URL="https://bot.example.org")
    assert "https://bot.example.org/slack/events" in done.stdout
