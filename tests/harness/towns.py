"""Where a scenario takes place: one platform's stand-in, and one person's DM with the bot there."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from bots.platforms import Platform
from bots.platforms.discord import PLATFORM as DISCORD
from bots.platforms.telegram import PLATFORM as TELEGRAM
from tests.harness.slack_town import SlackTown
from tests.standins.base import Call, StandIn
from tests.standins.discord import DiscordStandIn
from tests.standins.discord_chats import Message
from tests.standins.telegram import TelegramStandIn

ADA = 7


class Town(Protocol):
    """``key`` is the session of the DM; ``can_ask`` says that the platform can be asked whether a
    message arrived, so that nothing may double."""

    platform: Platform
    key: str
    can_ask: bool

    known: Mapping[str, str]
    """Facts that the service has from earlier talk."""

    @property
    def stand_in(self) -> StandIn: ...

    def environment(self, port: int) -> Mapping[str, str]:
        """Of a service that is to work here; with ``port``, by posts from the platform to it."""
        ...

    def says(self, text: str) -> None: ...

    def sends(self, text: str, *pictures: bytes) -> int:
        """As one; returns how many messages the platform makes of them."""
        ...

    def repeats(self) -> None:
        """The platform brings the newest message once more."""
        ...

    def bot_texts(self) -> list[str]:
        """As they are on her screen by now."""
        ...

    @property
    def pending(self) -> bool:
        """Whether the platform has something that it will bring by itself."""
        ...

    def counts(self, call: Call) -> bool:
        """Whether to kill around the call: not where nothing that a user sees hangs on it."""
        ...

    def brought(self, call: Call) -> bool:
        """Whether the answer to the call brings messages: before it nothing happens."""
        ...


class TelegramTown:
    platform = TELEGRAM
    key = f"agent:main:telegram:dm:{ADA}"
    can_ask = False
    known: Mapping[str, str] = {}
    _QUIET = (
        *("getMe", "setMyCommands", "sendChatAction"),
        *("deleteWebhook", "setWebhook", "getWebhookInfo"),
    )

    def __init__(self) -> None:
        self.stand_in = TelegramStandIn()
        self.ada = self.stand_in.user(ADA, "Ada")
        self._newest = 0

    def environment(self, port: int) -> Mapping[str, str]:
        hook = {"TELEGRAM_MODE": "webhook", "PUBLIC_URL": f"http://127.0.0.1:{port}"}
        here = {
            "TELEGRAM_BOT_TOKEN": self.stand_in.token,
            "TELEGRAM_API_URL": self.stand_in.url,
            "PTB_TIMEDELTA": "true",
        }
        return here | (hook if port else {})

    def says(self, text: str) -> None:
        self._newest = self.ada.says(text).update_id or 0

    def sends(self, text: str, *pictures: bytes) -> int:
        return len(self.ada.sends_album(*pictures, caption=text))

    def repeats(self) -> None:
        self.stand_in.redeliver(self._newest)

    def bot_texts(self) -> list[str]:
        return self.ada.bot_texts()

    @property
    def pending(self) -> bool:
        return bool(self.stand_in.updates.pending)

    def counts(self, call: Call) -> bool:
        return call.method not in (*self._QUIET, "getUpdates")

    def brought(self, call: Call) -> bool:
        return call.method == "getUpdates" and bool(call.effect)


class DiscordTown:
    """The database has to know that she wrote before (``known``): nobody brings, or finds, the
    first words of a stranger that came while nobody listened."""

    platform = DISCORD
    key = f"agent:main:discord:dm:{ADA}"
    can_ask = True
    DM = 7007
    known: Mapping[str, str] = {f"bookmark of discord: dm {DM}": "1"}
    _LOUD = ("create_message", "edit_message")

    def __init__(self) -> None:
        self.stand_in = DiscordStandIn()
        self.ada = self.stand_in.user(ADA, "Ada", dm=self.DM)
        self._newest: Message | None = None

    def environment(self, port: int) -> Mapping[str, str]:
        return {
            "DISCORD_BOT_TOKEN": self.stand_in.token,
            "DISCORD_API_URL": self.stand_in.api_url,
            "DISCORD_GATEWAY_URL": self.stand_in.gateway_url,
        }

    def says(self, text: str) -> None:
        self._newest = self.ada.says(text)

    def sends(self, text: str, *pictures: bytes) -> int:
        self.ada.sends_pictures(text, *pictures)
        return 1

    def repeats(self) -> None:
        if self._newest is not None:
            self.stand_in.redeliver(self._newest)

    def bot_texts(self) -> list[str]:
        """Marks of styles are not seen; a file is opened."""
        ours = [message for message in self.ada.chat if message.from_bot]
        return [re.sub(r"\\(.)|[*_`]", r"\1", message.whole) for message in ours]

    @property
    def pending(self) -> bool:
        """Discord does not know what was taken; nothing is, while nobody listens."""
        return not self.stand_in.gateway.connected

    def counts(self, call: Call) -> bool:
        return call.method in self._LOUD

    def brought(self, call: Call) -> bool:
        return call.method == "get_messages" and bool(call.effect)


TOWNS: dict[str, Callable[[], Town]] = {
    "telegram": TelegramTown,
    "slack": SlackTown,
    "discord": DiscordTown,
}


def platform_of(name: str) -> Platform:
    town: Any = TOWNS[name]
    return town.platform
