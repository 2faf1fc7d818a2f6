"""Takes updates that Telegram posts; it says 200 to those alone that are stored."""

import hmac
import json
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from telegram import Bot

from bots.platforms.patience import Patience, TokenRefusedError
from bots.platforms.signs import Signs
from bots.platforms.telegram.intake import Intake
from bots.platforms.telegram.settings import Settings
from bots.platforms.telegram.translate import WANTED
from core.errors import StorageError
from core.ports import Clock

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name
LOOK_SECONDS = 60.0
"""Nobody tells us that the webhook is gone, or that posts fail on their way: it is looked up."""


class Webhook:
    def __init__(
        self, bot: Bot, intake: Intake, signs: Signs, patience: Patience, clock: Clock
    ) -> None:
        self._bot = bot
        self._intake = intake
        self._signs = signs
        self._patience = patience
        self._clock = clock
        self._secret = ""
        self._url = ""
        self._open = False

    def route(self, settings: Settings) -> Route:
        self._secret = settings.webhook_secret
        self._url = settings.public_url + settings.webhook_path
        return Route(settings.webhook_path, self._receive, methods=["POST"])

    async def run(self) -> None:
        """Until it is cancelled; the webhook stays set. Raises TokenRefusedError."""
        self._open = True
        try:
            await self._patience.insist(self._set)
            while True:
                await self._clock.sleep(LOOK_SECONDS)
                if self._signs.refused:
                    raise TokenRefusedError
                await self._patience.insist(self._look)
        finally:
            self._open = False

    async def _set(self) -> None:
        await self._bot.set_webhook(
            self._url,
            secret_token=self._secret,
            allowed_updates=WANTED,
            drop_pending_updates=False,
        )
        self._signs.receiving()

    async def _look(self) -> None:
        """A webhook that someone took away is not set again: two instances would fight for it."""
        info = await self._bot.get_webhook_info()
        self._signs.heard()
        if info.url != self._url:
            self._signs.enter("conflict", "the webhook is not ours any more")
        elif info.pending_update_count and info.last_error_message:
            self._signs.enter("undelivered", info.last_error_message)
        else:
            self._signs.receiving()

    async def _receive(self, request: Request) -> Response:
        given = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode(), self._secret.encode()):
            return Response(status_code=403)
        if not self._open:
            return Response(status_code=503)
        try:
            update = _update(await request.body())
        except (ValueError, msgspec.ValidationError):
            return Response(status_code=400)
        try:
            await self._intake.take(update)
        except StorageError as error:
            self._signs.enter("not stored", str(error))
            return Response(status_code=500)
        self._signs.receiving()
        return Response(status_code=200)


def _update(body: bytes) -> dict[str, Any]:
    """Read as the SDK reads what is polled: half an emoji, or a byte that is no text, is no reason
    to refuse an update for ever. Raises ValueError, ValidationError."""
    return msgspec.convert(json.loads(body.decode(errors="replace")), dict[str, Any])
