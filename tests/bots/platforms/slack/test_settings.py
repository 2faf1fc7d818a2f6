"""Which variables make which way in, and what is said of those that are wrong."""

import pytest

from bots.platforms.slack.settings import API_URL, Settings, read
from core.errors import ConfigurationError

BOT = {"SLACK_BOT_TOKEN": "xoxb-1"}
APP = {"SLACK_APP_TOKEN": "xapp-1"}
SECRET = {"SLACK_SIGNING_SECRET": "s3cret"}


@pytest.mark.parametrize("given", [{}, {"SLACK_API_URL": "http://x.y"}, {"SLACK_BOT_TOKEN": " "}])
def test_it_is_off_without_tokens(given: dict[str, str]) -> None:
    assert read(given) is None


@pytest.mark.parametrize(("way", "by_socket"), [(APP, True), (SECRET, False), (APP | SECRET, True)])
def test_the_way_in_follows_from_what_is_set(way: dict[str, str], by_socket: bool) -> None:
    chosen = read(BOT | way)
    assert chosen is not None
    assert (chosen.by_socket, chosen.api_url) == (by_socket, API_URL)


def test_an_address_ends_without_a_slash() -> None:
    chosen = read(BOT | APP | {"SLACK_API_URL": " http://127.0.0.1:1/api/ "})
    assert chosen is not None
    assert chosen.api_url == "http://127.0.0.1:1/api"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (BOT, "set SLACK_APP_TOKEN"),
        (APP, "SLACK_BOT_TOKEN is not"),
        (SECRET, "SLACK_BOT_TOKEN is not"),
        ({"SLACK_BOT_TOKEN": "xoxp-1"} | APP, "SLACK_BOT_TOKEN is not a bot token"),
        (BOT | {"SLACK_APP_TOKEN": "A012"}, "SLACK_APP_TOKEN is not an app token"),
        (BOT | APP | {"SLACK_API_URL": "slack.com"}, "SLACK_API_URL is not"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read(given)


def test_all_that_is_wrong_is_said_at_once() -> None:
    given = {"SLACK_BOT_TOKEN": "x", "SLACK_APP_TOKEN": "y", "SLACK_API_URL": "z"}
    with pytest.raises(ConfigurationError) as caught:
        read(given)
    assert len(str(caught.value).splitlines()) == 3


def test_secrets_are_taken_out() -> None:
    chosen = Settings(bot_token="xoxb-1-abc", app_token="xapp-1-def", signing_secret="ghi")
    assert chosen.redact("xoxb-1-abc xapp-1-def ghi j") == "*** *** *** j"
