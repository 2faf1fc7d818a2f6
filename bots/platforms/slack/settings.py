"""Slack's variables, checked all at once; nothing else is read from the environment."""

import hashlib
import re
from collections.abc import Mapping

import msgspec

from bots.platforms import Variable
from core.errors import ConfigurationError

API_URL = "https://slack.com/api"
EVENTS_PATH = "/slack/events"
VARIABLES = (
    Variable(
        name="SLACK_BOT_TOKEN",
        help="the bot's token, xoxb-…; Slack is off without it",
        secret=True,
    ),
    Variable(
        name="SLACK_APP_TOKEN",
        help="the app's token, xapp-…, for Socket Mode, which needs no public address",
        secret=True,
    ),
    Variable(
        name="SLACK_SIGNING_SECRET",
        help=f"for events over HTTP, at {EVENTS_PATH}; not used where SLACK_APP_TOKEN is set",
        secret=True,
    ),
    Variable(
        name="SLACK_API_URL", help=f"the Web API, where <url>/<method> is (default {API_URL})"
    ),
)

_URL = re.compile(r"https?://[^\s/?#]+[^\s?#]*")
_FAULTS = {
    "bot": "SLACK_BOT_TOKEN is not a bot token (xoxb-…); copy it from «OAuth & Permissions»",
    "app": (
        "SLACK_APP_TOKEN is not an app token (xapp-…); make one with connections:write under "
        "«Basic Information», «App-Level Tokens»"
    ),
    "neither": (
        "SLACK_BOT_TOKEN needs a way for messages to come: set SLACK_APP_TOKEN (Socket Mode, no "
        "public address needed) or SLACK_SIGNING_SECRET (events over HTTP at <PUBLIC_URL>"
        f"{EVENTS_PATH})"
    ),
    "no bot": "SLACK_APP_TOKEN or SLACK_SIGNING_SECRET is set, and SLACK_BOT_TOKEN is not",
    "api_url": "SLACK_API_URL is not an http(s) address, like " + API_URL,
}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    bot_token: str
    app_token: str = ""
    signing_secret: str = ""
    api_url: str = API_URL

    @property
    def by_socket(self) -> bool:
        return bool(self.app_token)

    @property
    def intake(self) -> str:
        """Slack spreads its events over all sockets of an app; one of them is enough."""
        name = hashlib.sha256(self.app_token.encode()).hexdigest()[:16]
        return f"slack {name}" if self.by_socket else ""

    def redact(self, text: str) -> str:
        for secret in (self.bot_token, self.app_token, self.signing_secret):
            text = text.replace(secret, "***") if secret else text
        return text


def read(variables: Mapping[str, str]) -> Settings | None:
    """None where nothing is set. Raises ConfigurationError with all faults, one a line."""
    given = {name: value.strip() for name, value in variables.items()}
    bot, app = given.get("SLACK_BOT_TOKEN", ""), given.get("SLACK_APP_TOKEN", "")
    secret = given.get("SLACK_SIGNING_SECRET", "")
    api_url = given.get("SLACK_API_URL", "").rstrip("/") or API_URL
    if not (bot or app or secret):
        return None
    wrong = {
        "no bot": not bot,
        "bot": bot and not bot.startswith("xoxb-"),
        "app": app and not app.startswith("xapp-"),
        "neither": bot and not app and not secret,
        "api_url": not _URL.fullmatch(api_url),
    }
    if faults := [_FAULTS[name] for name, is_wrong in wrong.items() if is_wrong]:
        raise ConfigurationError("\n".join(faults))
    return Settings(bot_token=bot, app_token=app, signing_secret=secret, api_url=api_url)
