"""Telegram's queue of updates, by long poll or webhook; none leaves it before it is confirmed."""

import asyncio
from typing import Any

import aiohttp
import msgspec

from tests.standins.base import Call, StandIn
from tests.standins.faults import Refuse, RefusedError
from tests.standins.telegram_chats import now

WEBHOOK_IS_SET = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)
OTHER_POLLER = (
    "Conflict: terminated by other getUpdates request; "
    "make sure that only one bot instance is running"
)
OTHER_SET_WEBHOOK = "Conflict: terminated by setWebhook request"
# Kinds that Telegram leaves out unless they are asked for (Bot API, getUpdates).
ON_REQUEST = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
RETRY_SECONDS = 0.05
MAX_BATCH = 100


class Update(msgspec.Struct):
    """`again` is one that comes once more although it was confirmed."""

    id: int
    body: dict[str, Any]
    again: bool = False


class Webhook(msgspec.Struct, frozen=True):
    url: str
    secret: str | None


class Conflict(msgspec.Struct, frozen=True):
    """A poll of ``who`` was answered with 409, since ``by`` polled as well; `at` is Unix time."""

    at: float
    who: str
    by: str


class Updates:
    """`confirmed` are the ids that the bot took; `posts` the webhook's (id, status or error)."""

    def __init__(self, stand_in: StandIn) -> None:
        self.confirmed: set[int] = set()
        self.posts: list[tuple[int, int | str]] = []
        self.webhook: Webhook | None = None
        self.allowed: list[str] = []
        self.last_error: str | None = None
        self._stand_in = stand_in
        self._all: dict[int, dict[str, Any]] = {}
        self._pending: list[Update] = []
        self._last_id = 1000
        self._poller: Call | None = None
        self.conflicts: list[Conflict] = []
        """Two polls at once; one whose client had left by then is none."""
        self.poller = ""
        """Who polled last."""

    @property
    def pending(self) -> list[int]:
        return [update.id for update in self._pending]

    @property
    def newest(self) -> int:
        return self._last_id

    def add(self, kind: str, body: dict[str, Any]) -> int | None:
        """None when the bot did not ask for this kind."""
        wanted = kind in self.allowed if self.allowed else kind not in ON_REQUEST
        if not wanted:
            return None
        self._last_id += 1
        self._all[self._last_id] = {"update_id": self._last_id, kind: body}
        self._pending.append(Update(self._last_id, self._all[self._last_id]))
        return self._last_id

    def again(self, update_id: int) -> None:
        self._pending.append(Update(update_id, self._all[update_id], again=True))

    async def poll(self, call: Call) -> list[dict[str, Any]]:
        """A newer poll ends the earlier one with 409, as does a webhook."""
        params = call.params
        with self._stand_in.changes.lock:
            self._take_over(call)
            self._confirm_below(params.get("offset") or 0)
            self._allow(params.get("allowed_updates"))
        seconds = params.get("timeout") or 0
        await self._stand_in.until(call, lambda: self._has_news(call), seconds)
        with self._stand_in.changes.lock:
            self._check_still_polling(call)
            return self._batch(params.get("limit") or MAX_BATCH)

    def set_webhook(self, params: dict[str, Any]) -> bool:
        url = params.get("url") or ""
        self._allow(params.get("allowed_updates"))
        self.webhook = Webhook(url, params.get("secret_token")) if url else None
        self._drop_if_asked(params)
        return True

    def delete_webhook(self, params: dict[str, Any]) -> bool:
        self.webhook = None
        self._drop_if_asked(params)
        return True

    def webhook_info(self, params: dict[str, Any]) -> dict[str, Any]:
        info: dict[str, Any] = {
            "url": self.webhook.url if self.webhook else "",
            "has_custom_certificate": False,
            "pending_update_count": len(self._pending),
        }
        if self.last_error:
            info |= {"last_error_message": self.last_error, "last_error_date": 1}
        return info | ({"allowed_updates": self.allowed} if self.allowed else {})

    async def deliver(self) -> None:
        """One after the other, each again until it gets a 2xx."""
        async with aiohttp.ClientSession() as session:
            while True:
                await self._stand_in.changes.until(lambda: bool(self.webhook and self._pending))
                with self._stand_in.changes.lock:
                    job = (self.webhook, self._pending[0]) if self._pending else None
                if job and job[0] and not await self._post(session, job[0], job[1]):
                    await asyncio.sleep(RETRY_SECONDS)

    async def _post(self, session: aiohttp.ClientSession, hook: Webhook, update: Update) -> bool:
        headers = {"X-Telegram-Bot-Api-Secret-Token": hook.secret} if hook.secret else {}
        try:
            async with session.post(hook.url, json=update.body, headers=headers) as response:
                result: int | str = response.status
        except aiohttp.ClientError as error:
            result = f"{type(error).__name__}: {error}"
        taken = isinstance(result, int) and result // 100 == 2
        with self._stand_in.changes.lock:
            self.posts.append((update.id, result))
            self.last_error = None if taken else f"Wrong response from the webhook: {result}"
            if taken and update in self._pending:
                self._confirm(update)
        return taken

    def _take_over(self, call: Call) -> None:
        if self.webhook is not None:
            raise RefusedError(Refuse(409, WEBHOOK_IS_SET))
        self._poller, self.poller = call, call.who
        self._stand_in.changes.announce()

    def _has_news(self, call: Call) -> bool:
        return bool(self._poller is not call or self.webhook or self._pending)

    def _check_still_polling(self, call: Call) -> None:
        if self._poller is not call:
            if not self._stand_in.is_over(call):
                self.conflicts.append(Conflict(now(), call.who, self.poller))
            raise RefusedError(Refuse(409, OTHER_POLLER))
        self._poller = None
        if self.webhook is not None:
            raise RefusedError(Refuse(409, OTHER_SET_WEBHOOK))

    def _batch(self, limit: int) -> list[dict[str, Any]]:
        batch = self._pending[:limit]
        for update in batch:
            update.again = False
        return [update.body for update in batch]

    def _confirm_below(self, offset: int) -> None:
        if offset < 0:
            offset = self._pending[offset].id if len(self._pending) >= -offset else 0
        for update in [u for u in self._pending if u.id < offset and not u.again]:
            self._confirm(update)

    def _confirm(self, update: Update) -> None:
        self._pending.remove(update)
        self.confirmed.add(update.id)

    def _allow(self, kinds: list[str] | None) -> None:
        """The last list sticks (Bot API, getUpdates)."""
        if kinds is not None:
            self.allowed = kinds

    def _drop_if_asked(self, params: dict[str, Any]) -> None:
        if params.get("drop_pending_updates"):
            self._pending.clear()
        self._stand_in.changes.announce()
