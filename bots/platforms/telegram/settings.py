"""The platform's own variables as one checked value; it never reads the environment."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from bots.platforms import Variable
from core.errors import ConfigurationError

API_URL = "https://api.telegram.org"
VARIABLES = (
    Variable(
        name="TELEGRAM_BOT_TOKEN",
        help="the bot's token from @BotFather; Telegram is off without it",
        secret=True,
    ),
    Variable(name="TELEGRAM_API_URL", help=f"the Bot API server (default {API_URL})"),
    Variable(
        name="TELEGRAM_MODE",
        help="polling (default), or webhook, which needs PUBLIC_URL",
    ),
)

_TOKEN = re.compile(r"\d+:[A-Za-z0-9_-]+")
_URL = re.compile(r"https?://[^\s/?#]+[^\s?#]*")
_FAULTS = {
    "token": "TELEGRAM_BOT_TOKEN is not a bot token (123456:ABC…); copy it from @BotFather",
    "api_url": "TELEGRAM_API_URL is not an http(s) address, like " + API_URL,
    "mode": "TELEGRAM_MODE must be polling or webhook",
    "public_url": (
        "TELEGRAM_MODE=webhook needs PUBLIC_URL, the https address at which Telegram reaches this "
        "service, like https://bot.example.org"
    ),
}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    token: str
    api_url: str = API_URL
    mode: Literal["polling", "webhook"] = "polling"
    public_url: str = ""

    @property
    def webhook_secret(self) -> str:
        """What Telegram says with each update; it follows from the token, so it is not stored."""
        return self._derived("webhook secret")

    @property
    def intake(self) -> str:
        """Two that poll with one token take each other's place, again and again."""
        return f"telegram {self._derived('intake')[:16]}" if self.mode == "polling" else ""

    @property
    def webhook_path(self) -> str:
        return f"/telegram/{self._derived('webhook path')[:32]}"

    def redact(self, text: str) -> str:
        return text.replace(self.token.partition(":")[2], "***")

    def _derived(self, purpose: str) -> str:
        return hmac.new(self.token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def read(variables: Mapping[str, str], public_url: str) -> Settings | None:
    """None without a token. Raises ConfigurationError with all faults, one a line."""
    token = variables.get("TELEGRAM_BOT_TOKEN", "").strip()
    if not token:
        return None
    api_url = variables.get("TELEGRAM_API_URL", "").strip().rstrip("/") or API_URL
    mode = variables.get("TELEGRAM_MODE", "").strip().lower() or "polling"
    wrong = {
        "token": not _TOKEN.fullmatch(token),
        "api_url": not _URL.fullmatch(api_url),
        "mode": mode not in ("polling", "webhook"),
        "public_url": mode == "webhook" and not public_url,
    }
    if faults := [_FAULTS[name] for name, is_wrong in wrong.items() if is_wrong]:
        raise ConfigurationError("\n".join(faults))
    return Settings(
        token=token,
        api_url=api_url,
        mode="webhook" if mode == "webhook" else "polling",
        public_url=public_url.rstrip("/"),
    )
