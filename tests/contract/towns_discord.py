"""Discord's town for the adapter contract; it tests nothing itself."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from discord import gateway as sdk

from bots.platforms import Platform, discord
from bots.platforms.discord.invite import links
from tests.contract.town import Ability, Opens
from tests.standins.discord import DiscordStandIn
from tests.standins.discord_chats import Message
from tests.standins.discord_user import User
from tests.standins.faults import ANY, NONSENSE

CHANNEL = 500
HEARTBEAT_MS = 200
NEWER_THAN_THE_SDK = 99
LACKS: dict[Ability, str] = {
    "instances": "two connections with one token are normal: both hear everything, stored once"
}


class DiscordPerson:
    def __init__(self, user: User) -> None:
        self._user = user
        self._said: Message | None = None

    @property
    def last(self) -> Message:
        assert self._said is not None
        return self._said

    def says(self, text: str) -> None:
        self._said = self._user.says(text)

    def says_in(self, thread: int, text: str) -> None:
        self._said = self._user.says_in(CHANNEL + thread, text, mention=True)

    def commands(self, name: str) -> None:
        self._user.commands(name)

    def edits(self, text: str) -> None:
        self._said = self._user.edits(self.last, text)

    def deletes(self) -> None:
        self._user.deletes(self.last)

    def sends_unknown(self) -> None:
        self._said = self._user.sends_kind(NEWER_THAN_THE_SDK)

    def presses(self, label: str) -> None:
        shown = [message for message in self._user.chat if label in message.buttons]
        self._user.clicks(shown[-1], label)

    def sees(self) -> list[str]:
        return [message.whole for message in self._user.chat if message.from_bot]

    def sees_in(self, thread: int) -> list[str]:
        return self._user.bot_texts(CHANNEL + thread)


class DiscordTown:
    platform: Platform = discord.PLATFORM
    lacks: Mapping[Ability, str] = LACKS
    other_instance_word = ""
    token_word = "DISCORD_BOT_TOKEN"
    link = links("123456").server

    def __init__(self, place: DiscordStandIn) -> None:
        self._place = place
        self._people: dict[int, DiscordPerson] = {}
        place.gateway.heartbeat_ms = HEARTBEAT_MS
        place.channel(CHANNEL)
        for thread in (1, 2):
            place.thread(CHANNEL + thread, CHANNEL)

    def environment(self, public_url: str) -> dict[str, str]:
        return {
            "DISCORD_BOT_TOKEN": self._place.token,
            "DISCORD_API_URL": self._place.api_url,
            "DISCORD_GATEWAY_URL": self._place.gateway_url,
        }

    def person(self, number: int) -> DiscordPerson:
        if number not in self._people:
            self._people[number] = DiscordPerson(self._place.user(number, f"Person {number}"))
        return self._people[number]

    def redeliver(self) -> None:
        """Presses do not come again."""
        self._place.redeliver(self._people[1].last)

    def typings(self) -> int:
        return len(self._place.calls_of("typing"))

    def calls(self) -> int:
        return len(self._place.calls)

    def revoke(self) -> None:
        self._place.revoke_token()

    def impatient(self, patch: pytest.MonkeyPatch) -> None:
        begin = sdk.KeepAliveHandler.__init__

        def begin_soon_worried(self: sdk.KeepAliveHandler, *args: Any, **named: Any) -> None:
            begin(self, *args, **named)
            self.heartbeat_timeout = 1.0

        patch.setattr(sdk.KeepAliveHandler, "__init__", begin_soon_worried)

    async def fall_silent(self) -> None:
        self._place.gateway.fall_silent()

    def talks_nonsense(self) -> None:
        self._place.faults.next(ANY, *NONSENSE)

    @asynccontextmanager
    async def outage(self) -> AsyncGenerator[None]:
        await self._place.__aexit__()
        try:
            yield
        finally:
            self._place.start()

    def another(self) -> AbstractAsyncContextManager[None]:
        raise NotImplementedError


@asynccontextmanager
async def opens() -> AsyncGenerator[DiscordTown]:
    async with DiscordStandIn() as place:
        yield DiscordTown(place)


TOWNS: dict[str, Opens] = {"discord": opens}
