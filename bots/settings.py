"""The operator's settings, read once from the environment; all faults are told together."""

from collections.abc import Mapping
from datetime import time
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from core.domain.policy import BusyMode, Policy
from core.errors import ConfigurationError

DATABASE_NAME = "stillhere.db"
_SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "PASSWORD")
_SHORTEST_SECRET = 6


def _words(value: object) -> object:
    if not isinstance(value, str):
        return value
    return [word.strip() for word in value.split(",") if word.strip()]


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]


class Settings(BaseSettings):
    """Field names are the variables' names in lower case; ``.env.example`` says what each means."""

    model_config = SettingsConfigDict(
        frozen=True, env_ignore_empty=True, extra="ignore", protected_namespaces=()
    )

    database_url: SecretStr = SecretStr("")
    stillhere_data: Path = Path("data")
    model: str = ""
    model_fallbacks: Words = ()
    system_prompt: str = Policy().system_prompt
    public_url: str = Field(default="", pattern=r"^(https?://.+)?$")
    port: int = Field(default=8080, ge=0, le=65535)
    allowed_users: Words = ()
    busy_mode: BusyMode = "queue"
    idle_reset_minutes: float = Field(default=1440, ge=0)
    daily_reset_at: time | None = None
    drain_seconds: float = Field(default=20, ge=0)
    turn_max_steps: int = Field(default=50, ge=1)
    turn_max_attempts: int = Field(default=5, ge=1)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["plain", "json"] = "plain"

    @property
    def database(self) -> str:
        """The operator's URL, or the SQLite file under the data folder."""
        given = self.database_url.get_secret_value()
        return given or f"sqlite:///{(self.stillhere_data / DATABASE_NAME).absolute()}"

    def policy(self, model: str) -> Policy:
        return Policy(
            model=model,
            system_prompt=self.system_prompt,
            busy_mode=self.busy_mode,
            idle_reset=self.idle_reset_minutes * 60 or None,
            daily_reset_at=self.daily_reset_at,
            turn_max_steps=self.turn_max_steps,
            turn_max_attempts=self.turn_max_attempts,
        )


def read_settings() -> Settings:
    """Raises ConfigurationError with every fault, one a line."""
    try:
        return Settings()
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc'])).upper()}: {fault['msg']}"
            for fault in error.errors(include_input=False, include_url=False)
        ]
        raise ConfigurationError("\n".join(faults)) from None


def secrets_of(environment: Mapping[str, str], named: frozenset[str]) -> frozenset[str]:
    """The values that no log may show: of the variables named, and of those that look like it."""
    found = {
        value
        for name, value in environment.items()
        if name in named or name.upper().endswith(_SECRET_ENDINGS)
    }
    return frozenset(value for value in found if len(value) >= _SHORTEST_SECRET)
