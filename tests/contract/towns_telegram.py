"""Telegram's towns for the adapter contract: by polling and by webhook; it tests nothing itself."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Literal

import pytest

from bots.platforms import Platform, telegram
from bots.platforms.telegram import client, polling
from tests.contract.town import Ability, Opens
from tests.standins.faults import ANY, NONSENSE, Hang, Refuse
from tests.standins.telegram import TelegramStandIn
from tests.standins.telegram_chats import Message
from tests.standins.telegram_updates import OTHER_POLLER, Webhook
from tests.standins.telegram_user import User, buttons_of

FORUM = -1001
CONFLICT = Refuse(409, OTHER_POLLER)
ELSEWHERE = "http://127.0.0.1:9/elsewhere"


class TelegramPerson:
    def __init__(self, user: User) -> None:
        self._user = user
        self._said: Message | None = None

    def says(self, text: str) -> None:
        self._said = self._user.says(text)

    def says_in(self, thread: int, text: str) -> None:
        self._said = self._user.says_in(FORUM, text, thread_id=thread, mention=True)

    def commands(self, name: str) -> None:
        self.says(f"/{name}")

    def edits(self, text: str) -> None:
        self._user.edits(self._last.id, text, chat_id=self._last.chat_id)

    def deletes(self) -> None:
        self._user.deletes(self._last.id, chat_id=self._last.chat_id)

    def sends_unknown(self) -> None:
        self._user.sends_kind(hologram={"depth": 3})

    def presses(self, label: str) -> None:
        shown = {m.id: buttons_of(m.buttons) for m in self._user.chat}
        newest = max(message_id for message_id, buttons in shown.items() if label in buttons)
        self._user.clicks(newest, shown[newest][label])

    def sees(self) -> list[str]:
        return self._user.bot_texts()

    def sees_in(self, thread: int) -> list[str]:
        seen = self._user.sees(FORUM)
        return [m.text for m in seen if m.from_bot and m.thread_id == thread]

    @property
    def _last(self) -> Message:
        assert self._said is not None
        return self._said


class TelegramTown:
    platform: Platform = telegram.PLATFORM
    other_instance_word = "another instance"
    token_word = "TELEGRAM_BOT_TOKEN"
    link = "https://t.me/stillhere_bot"

    def __init__(self, tg: TelegramStandIn, mode: Literal["polling", "webhook"]) -> None:
        self._tg = tg
        self._mode = mode
        self._people: dict[int, TelegramPerson] = {}
        tg.group(FORUM, forum=True)

    @property
    def lacks(self) -> Mapping[Ability, str]:
        if self._mode == "polling":
            return {}
        return {"silence": "a webhook has no connection that stays open: each post is one"}

    def environment(self, public_url: str) -> dict[str, str]:
        return {
            "TELEGRAM_BOT_TOKEN": self._tg.token,
            "TELEGRAM_API_URL": self._tg.url,
            "TELEGRAM_MODE": self._mode,
        }

    def person(self, number: int) -> TelegramPerson:
        if number not in self._people:
            self._people[number] = TelegramPerson(self._tg.user(number, f"Person {number}"))
        return self._people[number]

    def redeliver(self) -> None:
        self._tg.redeliver(self._tg.updates.newest)

    def typings(self) -> int:
        return len(self._tg.calls_of("sendChatAction"))

    def calls(self) -> int:
        return len(self._tg.calls)

    def revoke(self) -> None:
        self._tg.revoke_token()

    def impatient(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(polling, "POLL", timedelta(seconds=1))
        patch.setattr(client, "POLL_SLACK_SECONDS", 1.0)

    async def fall_silent(self) -> None:
        polls = len(self._tg.calls_of("getUpdates"))
        self._tg.faults.next("getUpdates", Hang())
        await self._tg.wait_for(lambda: len(self._tg.calls_of("getUpdates")) > polls)

    def talks_nonsense(self) -> None:
        self._tg.faults.next(ANY, *NONSENSE)

    @asynccontextmanager
    async def outage(self) -> AsyncGenerator[None]:
        await self._tg.__aexit__()
        try:
            yield
        finally:
            self._tg.start()

    def another(self) -> AbstractAsyncContextManager[None]:
        return {"polling": self._other_poller, "webhook": self._other_webhook}[self._mode]()

    @asynccontextmanager
    async def _other_poller(self) -> AsyncGenerator[None]:
        self._tg.faults.always("getUpdates", CONFLICT)
        yield
        self._tg.faults.clear()

    @asynccontextmanager
    async def _other_webhook(self) -> AsyncGenerator[None]:
        self._tg.updates.webhook = Webhook(ELSEWHERE, None)
        yield


@asynccontextmanager
async def opens(mode: Literal["polling", "webhook"]) -> AsyncGenerator[TelegramTown]:
    async with TelegramStandIn() as tg:
        yield TelegramTown(tg, mode)


TOWNS: dict[str, Opens] = {
    "telegram by polling": partial(opens, "polling"),
    "telegram by webhook": partial(opens, "webhook"),
}
