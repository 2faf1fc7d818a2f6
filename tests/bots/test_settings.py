"""What an operator may write into the environment, and what is said of what is wrong there."""

from datetime import time
from pathlib import Path

import pytest

from bots.settings import MOST_MINUTES, Settings, read_settings, secrets_of
from core.domain.spending import limits_of
from core.errors import ConfigurationError


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def faults_of(monkeypatch: pytest.MonkeyPatch, **variables: str) -> dict[str, str]:
    """The sentences by variable."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        read_settings()
    told = str(caught.value).splitlines()
    return {line.partition(" ")[0]: line.partition(" ")[2] for line in told}


def test_nothing_needs_to_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = read_settings()
    assert settings.database == f"sqlite:///{tmp_path}/data/stillhere.db"
    assert (settings.port, settings.busy_mode, settings.drain_seconds) == (8080, "queue", 20)
    policy = settings.policy("demo")
    assert (policy.idle_reset, policy.daily_reset_at) == (24 * 3600, None)


def test_what_a_day_may_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits_of(read_settings().policy("demo")) == ()
    monkeypatch.setenv("DAILY_USD_PER_USER", "0.5")
    monkeypatch.setenv("DAILY_USD", "10")
    monkeypatch.setenv("DAILY_TOKENS_PER_USER", "20000")
    policy = read_settings().policy("demo")
    caps = (policy.daily_usd_per_user, policy.daily_usd, policy.daily_tokens_per_user)
    assert caps == (0.5, 10.0, 20_000)


def test_how_much_of_a_conversation_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_settings().policy("demo").strategy == "auto"
    monkeypatch.setenv("CONTEXT_STRATEGY", "Window ")
    monkeypatch.setenv("CONTEXT_WINDOW", "5000")
    policy = read_settings().policy("demo")
    assert (policy.strategy, policy.context_window) == ("window", 5_000)


def test_an_empty_value_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.setenv(name.upper(), "")
    assert read_settings() == Settings()


def test_every_fault_is_told_at_once_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = faults_of(
        monkeypatch,
        PUBLIC_URL="bot.example.org",
        PORT="http",
        ALLOWED_USERS="telegram:1,23",
        BUSY_MODE="later",
        DURABILITY="never",
        CONTEXT_STRATEGY="some",
        CONTEXT_WINDOW="-1",
        IDLE_RESET_MINUTES="-1",
        DAILY_RESET_AT="25:00",
        DRAIN_SECONDS="nan",
        TURN_MAX_STEPS="0",
        TURN_MAX_ATTEMPTS="1.5",
        DAILY_USD_PER_USER="-1",
        DAILY_USD="inf",
        DAILY_TOKENS_PER_USER="many",
        LOG_LEVEL="loud",
        LOG_FORMAT="xml",
    )
    assert faults == {
        "PUBLIC_URL": "must be an address such as https://bot.example.org",
        "PORT": "must be a port's number, from 0 (any free one) to 65535",
        "ALLOWED_USERS": "has entries without a platform or a user (23); write them like "
        "telegram:123, with a comma between them, or * for everyone",
        "BUSY_MODE": "must be queue, steer or interrupt",
        "DURABILITY": "must be sync, async or exit",
        "CONTEXT_STRATEGY": "must be full, window, compact or auto",
        "CONTEXT_WINDOW": "must be a number of tokens, or 0 for what the model takes",
        "IDLE_RESET_MINUTES": f"must be a number of minutes from 0 (never) to {MOST_MINUTES}",
        "DAILY_RESET_AT": "must be a time of day in UTC from 00:00 to 23:59, such as 04:00",
        "DRAIN_SECONDS": "must be a number of seconds, 0 to 86400",
        "TURN_MAX_STEPS": "must be a whole number, 1 or more",
        "TURN_MAX_ATTEMPTS": "must be a whole number, 1 or more",
        "DAILY_USD_PER_USER": "must be an amount of US dollars, 0 for no limit",
        "DAILY_USD": "must be an amount of US dollars, 0 for no limit",
        "DAILY_TOKENS_PER_USER": "must be a number of tokens, 0 for no limit",
        "LOG_LEVEL": "must be DEBUG, INFO, WARNING or ERROR",
        "LOG_FORMAT": "must be plain or json",
    }


def test_faults_from_elsewhere_are_told_in_the_same_breath(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "http")
    with pytest.raises(ConfigurationError, match=r"(?s)PORT must.*\nTOKEN is missing"):
        read_settings(["TOKEN is missing"])
    monkeypatch.delenv("PORT")
    with pytest.raises(ConfigurationError, match=r"^TOKEN is missing$"):
        read_settings(["TOKEN is missing"])


def test_no_fault_shows_a_value_that_may_be_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = faults_of(monkeypatch, PORT="sk-secret", DAILY_RESET_AT="sk-secret", LOG_LEVEL="sk-s")
    assert "sk-" not in str(faults)


@pytest.mark.parametrize(("text", "wanted"), [("04:00", time(4)), ("4:30", time(4, 30))])
def test_a_daily_reset_is_a_time_of_day(
    text: str, wanted: time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAILY_RESET_AT", text)
    assert read_settings().daily_reset_at == wanted


@pytest.mark.parametrize("text", ["4", "04", "0400", "04:60", "04:00+02:00", "04:00Z", "4am"])
def test_no_other_form_of_a_daily_reset_is_guessed_at(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(faults_of(monkeypatch, DAILY_RESET_AT=text)) == {"DAILY_RESET_AT"}


@pytest.mark.parametrize("text", ["inf", "1e300"])
def test_an_idle_reset_stays_within_the_calendar(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(faults_of(monkeypatch, IDLE_RESET_MINUTES=text)) == {"IDLE_RESET_MINUTES"}


def test_lists_and_words_are_read_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOWED_USERS", " telegram:1, slack:T1.U1 ,,discord:9")
    monkeypatch.setenv("MODEL_FALLBACKS", "a/b, c/d")
    monkeypatch.setenv("LOG_LEVEL", "debug")
    monkeypatch.setenv("BUSY_MODE", "Steer ")
    monkeypatch.setenv("DURABILITY", " EXIT")
    settings = read_settings()
    assert settings.allowed_users == ("telegram:1", "slack:T1.U1", "discord:9")
    assert settings.model_fallbacks == ("a/b", "c/d")
    assert (settings.log_level, settings.busy_mode) == ("DEBUG", "steer")
    assert settings.policy("demo").durability == "exit"


@pytest.mark.parametrize("entry", ["123", "telegram:", ":123", "*,@ada"])
def test_who_may_talk_is_named_with_the_platform(
    entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "telegram:123" in faults_of(monkeypatch, ALLOWED_USERS=entry)["ALLOWED_USERS"]


def test_zero_minutes_switch_the_idle_reset_off() -> None:
    assert Settings(idle_reset_minutes=0).policy("demo").idle_reset is None


def test_secrets_are_found_by_name_and_by_their_look() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-123456",
        "ODD": "named-secret",
        "PGPASSWORD": "password",
        "SHORT_KEY": "1",
        "HOME": "/home/ada",
    }
    found = secrets_of(environment, frozenset({"ODD"}))
    assert found == {"sk-123456", "named-secret", "password"}


def test_the_databases_address_is_not_shown_by_the_settings() -> None:
    assert "hush" not in repr(Settings.model_validate({"database_url": "postgres://a:hush@b/c"}))
