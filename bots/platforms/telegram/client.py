"""Holds the vendor's SDK and its connections; it decides nothing."""

from typing import Any, cast

from telegram import Bot
from telegram.request import HTTPXRequest

from bots.platforms.telegram.settings import Settings

RAW = "raw"
CONNECT_SECONDS = 5.0
SEND_SECONDS = 10.0
"""A send that is cut short may be said twice, so Telegram gets time to answer. Two sends and two
edits, the most that one row may need, stay below the 48 s that delivery gives a row."""
POLL_SLACK_SECONDS = 10.0
"""How much later than its own time limit a poll may be answered."""


class UpdatesRequest(HTTPXRequest):
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
        self._calls = HTTPXRequest(read_timeout=SEND_SECONDS, connect_timeout=CONNECT_SECONDS)
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
