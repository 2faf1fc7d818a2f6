"""Slack's towns for the adapter contract: by Socket Mode and by HTTP; it tests nothing itself."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Literal

import pytest

from bots.platforms import Platform, slack
from bots.platforms.slack import adapter
from bots.platforms.slack.settings import EVENTS_PATH
from bots.platforms.slack.socket import Socket
from tests.contract.town import Ability, Opens
from tests.standins.faults import ANY, NONSENSE
from tests.standins.slack import SlackStandIn
from tests.standins.slack_user import User
from tests.standins.slack_world import Message

CHANNEL = "C1"
ACK_SECONDS = 1.0
LACKS: dict[Ability, str] = {
    "typing": "outside of threads Slack has no sign for it; the growing message says enough",
    "instances": "several sockets of one app are normal: each event goes to one of them",
}
SILENCE: dict[Ability, str] = {"silence": "each post is a connection of its own"}


class SlackPerson:
    def __init__(self, user: User, threads: dict[int, str]) -> None:
        self._user = user
        self._threads = threads
        self._said: Message | None = None

    def says(self, text: str) -> None:
        self._said = self._user.says(text)

    def says_in(self, thread: int, text: str) -> None:
        root = self._threads.get(thread, "")
        self._said = self._user.says_in(CHANNEL, text, thread=root, mention=True)
        self._threads.setdefault(thread, self._said.ts)

    def commands(self, name: str) -> None:
        self._user.commands(name)

    def edits(self, text: str) -> None:
        self._user.edits(self._last.ts, text, channel=self._last.channel)

    def deletes(self) -> None:
        self._user.deletes(self._last.ts, channel=self._last.channel)

    def sends_unknown(self) -> None:
        self._said = self._user.says("", subtype="hologram")

    def presses(self, label: str) -> None:
        ts, value = next(
            (message.ts, str(button["value"]))
            for message in reversed(self._user.chat)
            for button in message.buttons
            if button["text"]["text"] == label
        )
        self._user.clicks(ts, value)

    def sees(self) -> list[str]:
        return self._user.bot_texts()

    def sees_in(self, thread: int) -> list[str]:
        return self._user.bot_texts(CHANNEL, self._threads[thread])

    @property
    def _last(self) -> Message:
        assert self._said is not None
        return self._said


class SlackTown:
    platform: Platform = slack.PLATFORM
    other_instance_word = ""
    token_word = "SLACK_BOT_TOKEN"
    link = "slack://user?team=T1&id=UBOT"

    def __init__(self, place: SlackStandIn, way: Literal["socket", "http"]) -> None:
        self._place = place
        self._way = way
        self._threads: dict[int, str] = {}
        self._people: dict[int, SlackPerson] = {}
        place.events.ack_seconds = ACK_SECONDS
        place.channel(CHANNEL)

    @property
    def lacks(self) -> Mapping[Ability, str]:
        return LACKS if self._way == "socket" else LACKS | SILENCE

    def environment(self, public_url: str) -> dict[str, str]:
        shared = {
            "SLACK_BOT_TOKEN": self._place.bot_token,
            "SLACK_API_URL": self._place.api_url,
        }
        if self._way == "socket":
            return shared | {"SLACK_APP_TOKEN": self._place.app_token}
        self._place.events.request_url = public_url + EVENTS_PATH
        return shared | {"SLACK_SIGNING_SECRET": self._place.signing_secret}

    def person(self, number: int) -> SlackPerson:
        if number not in self._people:
            user = self._place.user(f"U{number}", f"Person {number}")
            self._people[number] = SlackPerson(user, self._threads)
        return self._people[number]

    def redeliver(self) -> None:
        self._place.redeliver(self._place.events.envelopes[-1])

    def typings(self) -> int:
        raise NotImplementedError

    def calls(self) -> int:
        return len(self._place.calls)

    def revoke(self) -> None:
        self._place.refuse_token()

    def impatient(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(adapter, "Socket", partial(Socket, ping_seconds=0.3))

    async def fall_silent(self) -> None:
        self._place.events.fall_silent()

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
async def opens(way: Literal["socket", "http"]) -> AsyncGenerator[SlackTown]:
    async with SlackStandIn() as place:
        yield SlackTown(place, way)


TOWNS: dict[str, Opens] = {
    "slack by socket": partial(opens, "socket"),
    "slack by http": partial(opens, "http"),
}
