"""The invitation from outside: two links, or what is missing."""

from pathlib import Path

from tests.command import run

TOKEN = "MTIzNDU2Nzg5MDEyMzQ1Njc4OQ.ab.secret_half"


def test_the_links_follow_from_the_token_and_do_not_show_it(tmp_path: Path) -> None:
    done = run(tmp_path, "discord", "invite", DISCORD_BOT_TOKEN=TOKEN)
    links = [line.strip() for line in done.stdout.splitlines() if "https://" in line]
    assert (done.returncode, len(links)) == (0, 2)
    assert all("client_id=1234567890123456789" in link for link in links)
    assert "secret_half" not in done.stdout + done.stderr


def test_without_a_token_it_says_what_to_set(tmp_path: Path) -> None:
    done = run(tmp_path, "discord", "invite")
    assert (done.returncode, done.stdout) == (78, "")
    assert "DISCORD_BOT_TOKEN" in done.stderr
