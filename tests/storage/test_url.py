"""Addresses as operators and hosting services give them."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigurationError
from storage.url import PostgresUrl, SqliteUrl, parse_url

SECRET = "s3cr3t"


def postgres(text: str) -> PostgresUrl:
    url = parse_url(text)
    assert isinstance(url, PostgresUrl)
    return url


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sqlite:///data/bot.db", "data/bot.db"),
        ("sqlite:////var/lib/bot.db", "/var/lib/bot.db"),
        ("sqlite+aiosqlite:////var/lib/bot.db", "/var/lib/bot.db"),
        ("SQLite:///bot.db", "bot.db"),
        ("data/bot.db", "data/bot.db"),
        (" /var/lib/bot.db\n", "/var/lib/bot.db"),
    ],
)
def test_a_file(text: str, path: str) -> None:
    assert parse_url(text) == SqliteUrl(Path(path))


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_a_server(scheme: str) -> None:
    url = postgres(f"{scheme}://ann:p%40ss@db.example:6543/bot").url
    assert url.drivername == "postgresql+asyncpg"
    assert (url.username, url.password, url.host) == ("ann", "p@ss", "db.example")
    assert (url.port, url.database) == (6543, "bot")


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", "require"])
def test_sslmode_becomes_what_the_driver_knows(mode: str) -> None:
    url = postgres(f"postgres://h/d?sslmode={mode}")
    assert url.arguments["ssl"] == mode
    assert not url.url.query


@pytest.mark.parametrize(
    ("query", "verify", "hostname"),
    [
        ("sslmode=verify-full", ssl.CERT_REQUIRED, True),
        ("sslmode=verify-full&sslrootcert=system", ssl.CERT_REQUIRED, True),
        ("sslmode=verify-ca", ssl.CERT_REQUIRED, False),
        ("sslmode=require&sslrootcert=system", ssl.CERT_REQUIRED, False),
    ],
)
def test_a_certificate_is_checked_as_asked(
    query: str, verify: ssl.VerifyMode, hostname: bool
) -> None:
    context = postgres(f"postgres://h/d?{query}").arguments["ssl"]
    assert (context.verify_mode, context.check_hostname) == (verify, hostname)


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        ("connect_timeout=3", {"timeout": 3.0}),
        ("host=/run/postgresql&port=5433", {"host": "/run/postgresql", "port": 5433}),
        ("target_session_attrs=read-write", {"target_session_attrs": "read-write"}),
        ("", {"timeout": 10.0}),
    ],
)
def test_other_parameters_are_translated(query: str, arguments: dict[str, Any]) -> None:
    assert arguments.items() <= postgres(f"postgres:///d?{query}").arguments.items()


@pytest.mark.parametrize(
    ("query", "pooled"),
    [
        ("pgbouncer=true", True),
        ("prepared_statement_cache_size=0", True),
        ("pgbouncer=false", False),
        ("statement_cache_size=100", False),
        ("", False),
    ],
)
def test_a_pooler_is_named(query: str, pooled: bool) -> None:
    assert postgres(f"postgres://h/d?{query}").pooled is pooled


def test_what_the_server_is_told() -> None:
    url = postgres("postgres://h/d?application_name=bot&options=-c%20work_mem%3D8MB")
    assert url.settings == {"application_name": "bot", "options": "-c work_mem=8MB"}


def test_what_has_no_meaning_here_is_left_out_and_said() -> None:
    url = postgres("postgres://h/d?channel_binding=require&sslmode=require")
    assert url.arguments["ssl"] == "require"
    assert "channel_binding" not in url.arguments
    (note,) = url.notes
    assert "channel_binding" in note


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mysql://h/d", "mysql"),
        ("", "no file"),
        ("sqlite://", "no file"),
        ("sqlite:///:memory:", "no file"),
        (":memory:", "no file"),
        ("sqlite:///bot.db?mode=ro", "mode"),
        (f"postgres://ann:{SECRET}@h/d?sslmode=maybe", "sslmode"),
        (f"postgres://ann:{SECRET}@h/d?frobnicate=1", "frobnicate"),
        (f"postgres://ann:{SECRET}@h:port/d", "postgresql://user:password@host"),
        (f"postgres://ann:{SECRET}@h/d?port=x", "port"),
        (f"postgres://ann:{SECRET}@h/d?connect_timeout=x", "connect_timeout"),
        (f"postgres://ann:{SECRET}@h/d?sslrootcert=/nowhere.pem", "certificate"),
    ],
)
def test_what_cannot_be_used_is_refused_without_the_password(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_url(text)
    assert says in str(caught.value)
    assert SECRET not in str(caught.value)
