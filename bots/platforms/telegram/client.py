"""Holds the vendor's SDK and its connections; it decides nothing."""

from http import HTTPStatus
from typing import Any, cast

from telegram import Bot
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

from bots.platforms.telegram.settings import Settings

RAW = "raw"
CONNECT_SECONDS = 5.0
SEND_SECONDS = 10.0
"""A send that is cut short may be said twice, so Telegram gets time to answer. An edit and a send,
what a row may need, stay below the 24 s that delivery gives a row."""
POLL_SLACK_SECONDS = 10.0
"""How much later than its own time limit a poll may be answered."""


class NotFoundError(TelegramError):
    """Telegram's answer to a malformed token and to a path that it does not know."""


class Calls(HTTPXRequest):
    """The SDK takes a 404 for a refused token, as it takes a 401. It proves that nothing was done,
    but one of them is no reason to give up for good."""

    async def do_request(self, *arguments: Any, **named: Any) -> tuple[int, bytes]:  # noqa: ANN401
        code, payload = await super().do_request(*arguments, **named)
        if code == HTTPStatus.NOT_FOUND and payload.lstrip().startswith(b"{"):
            raise NotFoundError("Not found; is TELEGRAM_BOT_TOKEN or TELEGRAM_API_URL mistyped?")
        return code, payload


class UpdatesRequest(Calls):
    """Leaves every update unread, under ``RAW``: the SDK reads a batch as a whole, and one update
    that it cannot read would hide all that came with it, again and again."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        answer: dict[str, Any] = HTTPXRequest.parse_json_payload(payload)
        if isinstance(answer.get("result"), list):
            updates = cast("list[dict[str, Any]]", answer["result"])
            answer["result"] = [{"update_id": raw["update_id"], RAW: raw} for raw in updates]
        return answer


class Client:
    """``bot`` is the SDK's plain client: it never repeats a call by itself."""

    def __init__(self, settings: Settings) -> None:
        self._updates = UpdatesRequest(
            read_timeout=POLL_SLACK_SECONDS, connect_timeout=CONNECT_SECONDS
        )
        self._calls = Calls(read_timeout=SEND_SECONDS, connect_timeout=CONNECT_SECONDS)
        self.bot = Bot(
            settings.token,
            base_url=f"{settings.api_url}/bot",
            base_file_url=f"{settings.api_url}/file/bot",
            request=self._calls,
            get_updates_request=self._updates,
        )

    async def open(self) -> None:
        await self._updates.initialize()
        await self._calls.initialize()

    async def close(self) -> None:
        await self._updates.shutdown()
        await self._calls.shutdown()
