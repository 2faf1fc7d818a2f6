"""Which variables are wrong is said all at once; nothing is derived that shows the token."""

import pytest

from bots.platforms.telegram.settings import API_URL, Settings, read
from core.errors import ConfigurationError

TOKEN = "123456:AAF-secret_half"


def settings(**variables: str) -> Settings:
    found = read({"TELEGRAM_BOT_TOKEN": TOKEN} | variables, "https://bot.example.org/")
    assert found is not None
    return found


@pytest.mark.parametrize("variables", [{}, {"TELEGRAM_BOT_TOKEN": " "}])
def test_without_a_token_it_is_off(variables: dict[str, str]) -> None:
    assert read(variables | {"TELEGRAM_MODE": "webhook"}, "") is None


def test_polling_at_telegram_is_the_default() -> None:
    assert (settings().mode, settings().api_url) == ("polling", API_URL)


def test_all_faults_are_told_and_none_shows_the_token() -> None:
    wrong = {
        "TELEGRAM_BOT_TOKEN": "no token: " + TOKEN,
        "TELEGRAM_API_URL": "api.telegram.org",
        "TELEGRAM_MODE": "push",
    }
    with pytest.raises(ConfigurationError) as caught:
        read(wrong, "")
    lines = str(caught.value).splitlines()
    assert [line.split()[0] for line in lines] == list(wrong)
    assert "secret_half" not in str(caught.value)


def test_a_webhook_needs_the_public_address() -> None:
    with pytest.raises(ConfigurationError, match="needs PUBLIC_URL"):
        read({"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_MODE": "webhook"}, "")
    hook = settings(TELEGRAM_MODE="Webhook", TELEGRAM_API_URL="http://127.0.0.1:8081/")
    assert (hook.mode, hook.public_url) == ("webhook", "https://bot.example.org")
    assert hook.api_url == "http://127.0.0.1:8081"


def test_the_webhooks_secret_and_path_follow_from_the_token_and_do_not_show_it() -> None:
    one, same, other = settings(), settings(), settings(TELEGRAM_BOT_TOKEN="123456:other")
    assert (one.webhook_secret, one.webhook_path) == (same.webhook_secret, same.webhook_path)
    assert {one.webhook_secret, one.webhook_path}.isdisjoint(
        {other.webhook_secret, other.webhook_path}
    )
    assert one.webhook_path.rpartition("/")[2] not in one.webhook_secret
    assert "secret_half" not in one.webhook_secret + one.webhook_path


def test_redacting_leaves_no_half_of_the_token_that_is_secret() -> None:
    shown = settings().redact(f"GET https://api.telegram.org/bot{TOKEN}/getMe")
    assert shown == "GET https://api.telegram.org/bot123456:***/getMe"
