"""Which variables are wrong is said all at once; the token shows in nothing."""

import base64

import pytest

from bots.platforms.discord.settings import Settings, read
from core.errors import ConfigurationError

TOKEN = (
    base64.urlsafe_b64encode(b"1234567890123456789").decode().rstrip("=") + ".Gx1yz2.secret_half"
)


def settings(**variables: str) -> Settings:
    found = read({"DISCORD_BOT_TOKEN": TOKEN} | variables)
    assert found is not None
    return found


@pytest.mark.parametrize("variables", [{}, {"DISCORD_BOT_TOKEN": " "}])
def test_without_a_token_it_is_off(variables: dict[str, str]) -> None:
    assert read(variables | {"DISCORD_API_URL": "http://127.0.0.1:1/api/v10"}) is None


def test_discord_itself_is_the_default() -> None:
    assert (settings().api_url, settings().gateway_url) == ("", "")


def test_addresses_are_taken_as_they_are() -> None:
    found = settings(
        DISCORD_API_URL=" http://127.0.0.1:1/api/v10/ ", DISCORD_GATEWAY_URL="ws://127.0.0.1:1/gw/"
    )
    assert found.api_url == "http://127.0.0.1:1/api/v10"
    assert found.gateway_url == "ws://127.0.0.1:1/gw/"


def test_all_faults_are_told_and_none_shows_the_token() -> None:
    wrong = {
        "DISCORD_BOT_TOKEN": "Bot " + TOKEN,
        "DISCORD_API_URL": "discord.com",
        "DISCORD_GATEWAY_URL": "https://gateway.discord.gg",
    }
    with pytest.raises(ConfigurationError) as caught:
        read(wrong)
    lines = str(caught.value).splitlines()
    assert [line.split()[0] for line in lines] == list(wrong)
    assert "secret_half" not in str(caught.value)


def test_the_application_is_named_by_the_token() -> None:
    assert settings().application_id == "1234567890123456789"


@pytest.mark.parametrize("head", ["abcd", "%%%", "YWJjZA"])
def test_a_token_that_names_no_application_is_a_fault(head: str) -> None:
    with pytest.raises(ConfigurationError, match="DISCORD_BOT_TOKEN"):
        assert Settings(token=f"{head}.a.b").application_id


def test_the_token_and_its_secret_part_are_hidden() -> None:
    assert settings().redact(f"{TOKEN} and secret_half") == "*** and ***"
