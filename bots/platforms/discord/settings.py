"""The platform's own variables as one checked value; it never reads the environment."""

import base64
import binascii
import re
from collections.abc import Mapping

import msgspec

from bots.platforms import Variable
from core.errors import ConfigurationError

API_URL = "https://discord.com/api/v10"
VARIABLES = (
    Variable(
        name="DISCORD_BOT_TOKEN",
        help="the bot's token from the developer portal; Discord is off without it",
        secret=True,
    ),
    Variable(
        name="DISCORD_API_URL",
        help=f"the REST server, up to and with its version (default {API_URL})",
    ),
    Variable(name="DISCORD_GATEWAY_URL", help="the gateway (default wss://gateway.discord.gg/)"),
)

_TOKEN = re.compile(r"[\w-]{4,}\.[\w-]+\.[\w-]+")
_API_URL = re.compile(r"https?://[^\s/?#]+[^\s?#]*")
_GATEWAY_URL = re.compile(r"wss?://[^\s/?#]+[^\s?#]*")
_FAULTS = {
    "token": (
        "DISCORD_BOT_TOKEN is not a bot token (three parts with dots between them); reset it on "
        "your application's «Bot» page and copy it from there"
    ),
    "api_url": "DISCORD_API_URL is not an http(s) address, like " + API_URL,
    "gateway_url": "DISCORD_GATEWAY_URL is not a ws(s) address, like wss://gateway.discord.gg/",
}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """An empty address is Discord's own."""

    token: str
    api_url: str = ""
    gateway_url: str = ""

    @property
    def application_id(self) -> str:
        """The first part of a token is its application's id. Raises ConfigurationError."""
        head = self.token.partition(".")[0]
        try:
            found = base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            found = ""
        if not found.isdigit():
            raise ConfigurationError(_FAULTS["token"])
        return found

    def redact(self, text: str) -> str:
        return text.replace(self.token, "***").replace(self.token.rpartition(".")[2], "***")


def read(variables: Mapping[str, str]) -> Settings | None:
    """None without a token. Raises ConfigurationError with all faults, one a line."""
    token = variables.get("DISCORD_BOT_TOKEN", "").strip()
    if not token:
        return None
    api_url = variables.get("DISCORD_API_URL", "").strip().rstrip("/")
    gateway_url = variables.get("DISCORD_GATEWAY_URL", "").strip()
    wrong = {
        "token": not _TOKEN.fullmatch(token),
        "api_url": bool(api_url) and not _API_URL.fullmatch(api_url),
        "gateway_url": bool(gateway_url) and not _GATEWAY_URL.fullmatch(gateway_url),
    }
    if faults := [_FAULTS[name] for name, is_wrong in wrong.items() if is_wrong]:
        raise ConfigurationError("\n".join(faults))
    return Settings(token=token, api_url=api_url, gateway_url=gateway_url)
