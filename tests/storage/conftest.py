"""The databases that the storage tests run on."""

from tests.databases import (
    database_url,
    empty_postgres_url,
    empty_url,
    postgres_url,
    sqlite_url,
)
from tests.postgres import postgres_server, postgres_template

__all__ = [
    "database_url",
    "empty_postgres_url",
    "empty_url",
    "postgres_server",
    "postgres_template",
    "postgres_url",
    "sqlite_url",
]
