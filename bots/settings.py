"""The operator's settings, read once from the environment; all faults are told together."""

import re
from collections.abc import Iterable, Mapping
from datetime import time
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from core.domain.policy import BusyMode, Durability, Policy, Strategy
from core.errors import ConfigurationError
from core.files.limits import Limits
from storage.url import SqliteUrl, parse_url

DATABASE_NAME = "stillhere.db"
MOST_MINUTES = 10 * 366 * 24 * 60
"""Ten years, so that no due time leaves the calendar."""
MOST_SECONDS = 24 * 3600
MOST_CONNECTIONS = 100
_SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "PASSWORD")
_SHORTEST_SECRET = 6
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _words(value: object) -> object:
    return _split(value) if isinstance(value, str) else value


def _users(value: object) -> object:
    if not isinstance(value, str):
        return value
    entries = _split(value)
    bare = [entry for entry in entries if entry != "*" and not all(entry.partition(":"))]
    if bare:
        raise ValueError(
            f"has entries without a platform or a user ({', '.join(bare)}); "
            "write them like telegram:123, with a comma between them, or * for everyone"
        )
    return entries


def _time_of_day(value: object) -> object:
    """Strictly: a time with a zone of its own would be taken for UTC without a word."""
    if not isinstance(value, str):
        return value
    found = _TIME_OF_DAY.fullmatch(value.strip())
    if found is None:
        raise ValueError("must be a time of day in UTC from 00:00 to 23:59, such as 04:00")
    return time(int(found[1]), int(found[2]))


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _upper(value: object) -> object:
    return value.strip().upper() if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]
Users = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_users)]


class Settings(BaseSettings):
    """Field names are the variables' names in lower case; ``.env.example`` says what each means.

    A field's description says what its value must be, for whoever gave another.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        env_ignore_empty=True,
        extra="ignore",
        protected_namespaces=(),
        str_strip_whitespace=True,
    )

    database_url: SecretStr = SecretStr("")
    direct_database_url: SecretStr = SecretStr("")
    database_pool: int = Field(
        default=5, ge=1, le=MOST_CONNECTIONS, description=f"a number from 1 to {MOST_CONNECTIONS}"
    )
    stillhere_data: Path = Path("data")
    model: str = ""
    model_fallbacks: Words = ()
    model_sees: Annotated[Literal["auto", "yes", "no"], BeforeValidator(_lower)] = Field(
        default="auto", description="auto, yes or no"
    )
    summary_model: str = ""
    transcribe_model: str = ""
    context_strategy: Annotated[Strategy, BeforeValidator(_lower)] = Field(
        default="auto", description="full, window, compact or auto"
    )
    context_window: int = Field(
        default=0, ge=0, description="a number of tokens, or 0 for what the model takes"
    )
    system_prompt: str = Policy().system_prompt
    attachment_max_bytes: int = Field(
        default=Limits().attachment_bytes, ge=0, description="a number of bytes, 0 or more"
    )
    picture_max_side: int = Field(
        default=Limits().picture_side, ge=64, le=8192, description="pixels, 64 to 8192"
    )
    picture_max_bytes: int = Field(
        default=Limits().picture_bytes, ge=4096, description="a number of bytes, 4096 or more"
    )
    document_max_characters: int = Field(
        default=Limits().characters, ge=100, description="a number of characters, 100 or more"
    )
    public_url: str = Field(
        default="",
        pattern=r"^(https?://[^\s/]+\S*)?$",
        description="an address such as https://bot.example.org",
    )
    port: int = Field(
        default=8080, ge=0, le=65535, description="a port's number, from 0 (any free one) to 65535"
    )
    allowed_users: Users = ()
    busy_mode: Annotated[BusyMode, BeforeValidator(_lower)] = Field(
        default="queue", description="queue, steer or interrupt"
    )
    durability: Annotated[Durability, BeforeValidator(_lower)] = Field(
        default="sync", description="sync, async or exit"
    )
    role: Annotated[Literal["all", "intake", "worker"], BeforeValidator(_lower)] = Field(
        default="all", description="all, intake or worker"
    )
    max_turns: int = Field(default=64, ge=1, description="a whole number, 1 or more")
    idle_reset_minutes: float = Field(
        default=1440,
        ge=0,
        le=MOST_MINUTES,
        description=f"a number of minutes from 0 (never) to {MOST_MINUTES}",
    )
    daily_reset_at: Annotated[time | None, BeforeValidator(_time_of_day)] = None
    drain_seconds: float = Field(
        default=20, ge=0, le=MOST_SECONDS, description=f"a number of seconds, 0 to {MOST_SECONDS}"
    )
    turn_max_steps: int = Field(default=50, ge=1, description="a whole number, 1 or more")
    turn_max_attempts: int = Field(default=5, ge=1, description="a whole number, 1 or more")
    daily_usd_per_user: float = Field(
        default=0, ge=0, allow_inf_nan=False, description="an amount of US dollars, 0 for no limit"
    )
    daily_tokens_per_user: int = Field(
        default=0, ge=0, description="a number of tokens, 0 for no limit"
    )
    daily_usd: float = Field(
        default=0, ge=0, allow_inf_nan=False, description="an amount of US dollars, 0 for no limit"
    )
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_upper)] = (
        Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR")
    )
    log_format: Annotated[Literal["plain", "json"], BeforeValidator(_lower)] = Field(
        default="plain", description="plain or json"
    )

    @property
    def database(self) -> str:
        """The operator's URL, or the SQLite file under the data folder."""
        given = self.database_url.get_secret_value()
        return given or f"sqlite:///{(self.stillhere_data / DATABASE_NAME).absolute()}"

    @property
    def keeps_files(self) -> bool:
        """Whether anything that matters is on this machine's disk."""
        return isinstance(parse_url(self.database), SqliteUrl)

    @property
    def direct_database(self) -> str:
        """The way to the same database that no pooler is on; as ``database`` where none is named.
        What lasts beyond a transaction, such as LISTEN, works on this one alone."""
        return self.direct_database_url.get_secret_value() or self.database

    @property
    def sees(self) -> bool | None:
        """None: whatever is known of the model."""
        return {"yes": True, "no": False}.get(self.model_sees)

    @property
    def limits(self) -> Limits:
        return Limits(
            attachment_bytes=self.attachment_max_bytes,
            picture_side=self.picture_max_side,
            picture_bytes=self.picture_max_bytes,
            characters=self.document_max_characters,
        )

    def policy(self, model: str) -> Policy:
        return Policy(
            model=model,
            system_prompt=self.system_prompt,
            busy_mode=self.busy_mode,
            strategy=self.context_strategy,
            context_window=self.context_window or Policy().context_window,
            durability=self.durability,
            idle_reset=self.idle_reset_minutes * 60 or None,
            daily_reset_at=self.daily_reset_at,
            turn_max_steps=self.turn_max_steps,
            turn_max_attempts=self.turn_max_attempts,
            daily_usd_per_user=self.daily_usd_per_user,
            daily_tokens_per_user=self.daily_tokens_per_user,
            daily_usd=self.daily_usd,
        )


def read_settings(others: Iterable[str] = ()) -> Settings:
    """``others`` are faults found elsewhere, to be told in the same breath.

    Raises ConfigurationError with every fault, one a line.
    """
    faults: list[str] = []
    settings: Settings | None = None
    try:
        settings = Settings()
    except ValidationError as error:
        faults += [_told(fault) for fault in error.errors(include_url=False)]
    faults += others
    if settings is None or faults:
        raise ConfigurationError("\n".join(faults))
    return settings


def _told(fault: ErrorDetails) -> str:
    """The variable and what it must be; never its value, which may be a secret out of place."""
    name = str(fault["loc"][0])
    own = fault.get("ctx", {}).get("error")
    wanted = f"must be {Settings.model_fields[name].description}"
    return f"{name.upper()} {own if isinstance(own, ValueError) else wanted}"


def secrets_of(environment: Mapping[str, str], named: frozenset[str]) -> frozenset[str]:
    """The values that no log may show: of the variables named, and of those that look like it."""
    found = {
        value
        for name, value in environment.items()
        if name in named or name.upper().endswith(_SECRET_ENDINGS)
    }
    return frozenset(value for value in found if len(value) >= _SHORTEST_SECRET)
