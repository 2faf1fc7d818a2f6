"""What several commands need: the settings with the logs set up by them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from bots.logs import database_secrets, set_up_logs
from bots.platforms import Platform
from bots.settings import Settings, read_settings, secrets_of


def environment() -> Mapping[str, str]:
    return dict(os.environ)


def prepare(platforms: Mapping[str, Platform], stream: TextIO) -> Settings:
    """Reads the settings and sends the logs to ``stream``. Raises ConfigurationError."""
    settings = read_settings()
    named = frozenset(
        variable.name
        for platform in platforms.values()
        for variable in platform.variables
        if variable.secret
    )
    hidden = secrets_of(environment(), named) | database_secrets(settings.database)
    set_up_logs(settings.log_level, settings.log_format, hidden, stream)
    return settings


def data_folder(settings: Settings) -> Path:
    """The folder of everything that is kept on disk, private to its owner."""
    settings.stillhere_data.mkdir(mode=0o700, parents=True, exist_ok=True)
    return settings.stillhere_data
