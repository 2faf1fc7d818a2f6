"""The process's environment with what the file .env adds; nothing else reads either."""

import os
from collections.abc import Mapping
from pathlib import Path

from dotenv import dotenv_values

from core.errors import ConfigurationError


def add_file(path: Path) -> None:
    """What is set already goes first, and an empty value counts as not set: so a copy of
    ``.env.example`` changes nothing. The values are exported, since vendors' libraries read theirs
    by themselves. Raises ConfigurationError."""
    try:
        found = dotenv_values(path) if path.is_file() else {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read as UTF-8 text: {error}") from error
    for name, value in found.items():
        if value and not os.environ.get(name):
            os.environ[name] = value


def environment() -> Mapping[str, str]:
    return dict(os.environ)
