"""An operator's database address as the drivers want it; never says its password."""

import re
import shlex
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from core.errors import ConfigurationError

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(?=//)")
_SQLITE = ("sqlite", "sqlite+aiosqlite", "sqlite+pysqlite")
_POSTGRES = ("postgres", "postgresql", "postgresql+asyncpg", "postgresql+psycopg")
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_CONNECT_TIMEOUT = 10.0
"""Seconds; asyncpg's own minute is longer than a start may take."""

_DROPPED = {
    "channel_binding": "asyncpg has no channel binding; the connection is still encrypted",
    "gssencmode": "GSSAPI encryption is not used",
    "krbsrvname": "GSSAPI is not used",
    "client_encoding": "it is always UTF-8",
    "fallback_application_name": "application_name is read instead",
    "keepalives": "an idle connection is asked after 30 s",
    "keepalives_idle": "an idle connection is asked after 30 s",
    "keepalives_interval": "an idle connection is asked after 30 s",
    "keepalives_count": "an idle connection is asked after 30 s",
    "tcp_user_timeout": "every command has its own time limit",
    "sslcompression": "it is never used",
    "sslsni": "it is always sent",
    "connection_limit": "DATABASE_POOL is the number of connections",
    "pool_timeout": "the pool has its own time limit",
}


class SqliteUrl(msgspec.Struct, frozen=True):
    path: Path


class PostgresUrl(msgspec.Struct, frozen=True):
    """``arguments`` go to ``asyncpg.connect``, ``settings`` to the server; ``notes`` say what was
    left out, and why. ``pooled``: a pooler shares the server's sessions out by transaction."""

    url: sa.URL
    arguments: dict[str, Any]
    settings: dict[str, str]
    notes: tuple[str, ...] = ()
    pooled: bool = False


DatabaseUrl = SqliteUrl | PostgresUrl


def parse_url(text: str) -> DatabaseUrl:
    """``postgres://``, ``postgresql://``, ``sqlite:///path`` or a bare path.

    Raises ConfigurationError.
    """
    text = text.strip()
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _sqlite(text)
    name = scheme.group(1).lower()
    if name not in _SQLITE and name not in _POSTGRES:
        raise ConfigurationError(
            f"DATABASE_URL begins with {name}://. Use postgresql:// or sqlite:///path/to/file.db"
        )
    try:
        url = make_url(name + text[scheme.end(1) :])
    except (ArgumentError, ValueError):
        raise ConfigurationError(
            "DATABASE_URL cannot be read. Its form is postgresql://user:password@host:5432/name;"
            " special characters in the password are written as %XX"
        ) from None
    return _postgres(url) if name in _POSTGRES else _sqlite(url.database or "", url.query)


def _sqlite(path: str, query: Mapping[str, Any] | None = None) -> SqliteUrl:
    if path in ("", ":memory:"):
        raise ConfigurationError("DATABASE_URL names no file: use sqlite:///path/to/file.db")
    if query:
        raise ConfigurationError(
            f"DATABASE_URL: a SQLite address takes no parameters; remove {', '.join(query)}"
        )
    return SqliteUrl(Path(path).expanduser())


def _postgres(url: sa.URL) -> PostgresUrl:
    arguments: dict[str, Any] = {"timeout": _CONNECT_TIMEOUT}
    parameters = {name: _last(value) for name, value in url.query.items()}
    if (encryption := _encryption(parameters)) is not None:
        arguments["ssl"] = encryption
    settings: dict[str, str] = {}
    notes: list[str] = []
    pooled = False
    for name, value in parameters.items():
        if name in _DROPPED:
            notes.append(f"{name} in DATABASE_URL is not used: {_DROPPED[name]}")
        elif name in ("application_name", "options"):
            settings[name] = value
        elif name in _POOLED:
            pooled = pooled or value in _POOLED[name]
        elif name in _TRANSLATED:
            arguments.update(_TRANSLATED[name](value))
        elif name not in _SSL_PARAMETERS:
            raise ConfigurationError(f"DATABASE_URL: the parameter {name} is not known; remove it")
    plain = url.set(drivername="postgresql+asyncpg", query={})
    return PostgresUrl(plain, arguments, settings, tuple(notes), pooled)


def dump_command(server: PostgresUrl, name: str) -> str:
    """For the operator to make a backup by; it asks for the password.
    https://www.postgresql.org/docs/current/app-pgdump.html"""
    url = server.url
    given = {"host": url.host, "port": url.port, "username": url.username, "dbname": url.database}
    words = [f"--{option}={value}" for option, value in given.items() if value]
    return shlex.join(["pg_dump", "--format=custom", f"--file={name}.dump", *words])


def _last(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else value[-1]


_SSL_PARAMETERS = ("sslmode", "ssl", "sslrootcert", "sslcert", "sslkey")


def _encryption(parameters: Mapping[str, str]) -> str | ssl.SSLContext | None:
    """The value of asyncpg's ``ssl``; None leaves it to asyncpg, which prefers encryption."""
    mode = parameters.get("sslmode", parameters.get("ssl"))
    mode = {"true": "require", "on": "require", "false": "disable", None: None}.get(mode, mode)
    files = [name for name in _SSL_PARAMETERS[2:] if name in parameters]
    if mode is None and files:
        mode = "verify-full" if "sslrootcert" in files else "require"
    if mode is None:
        return None
    if mode not in _SSL_MODES:
        raise ConfigurationError(f"DATABASE_URL: sslmode is one of {', '.join(_SSL_MODES)}")
    if not files and not mode.startswith("verify"):
        return mode
    return _context(mode, parameters)


def _context(mode: str, parameters: Mapping[str, str]) -> ssl.SSLContext:
    roots = parameters.get("sslrootcert")
    certificate = parameters.get("sslcert")
    try:
        context = ssl.create_default_context(cafile=None if roots == "system" else roots)
        if certificate is not None:
            context.load_cert_chain(certificate, parameters.get("sslkey"))
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"DATABASE_URL: a certificate cannot be read: {error}") from error
    context.check_hostname = mode == "verify-full"
    if not mode.startswith("verify") and roots is None:
        context.verify_mode = ssl.CERT_NONE
    return context


def _number(
    given: str, name: str, kind: type[int] | type[float]
) -> Callable[[str], dict[str, Any]]:
    def read(value: str) -> dict[str, Any]:
        try:
            return {name: kind(value)}
        except ValueError:
            raise ConfigurationError(f"DATABASE_URL: {given} is not a number") from None

    return read


def _as_is(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda value: {name: value}


_TRANSLATED: dict[str, Callable[[str], dict[str, Any]]] = {
    "connect_timeout": _number("connect_timeout", "timeout", float),
    "host": _as_is("host"),
    "port": _number("port", "port", int),
    "user": _as_is("user"),
    "password": _as_is("password"),
    "dbname": _as_is("database"),
    "target_session_attrs": _as_is("target_session_attrs"),
}
_POOLED = {
    "pgbouncer": ("true", "1"),
    "statement_cache_size": ("0",),
    "prepared_statement_cache_size": ("0",),
}
"""What says that a pooler stands in between: Prisma's word for it, and those of the drivers."""
