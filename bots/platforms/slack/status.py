"""Shows in a thread that an answer is being made, and takes it away; it never insists."""

from collections import OrderedDict
from datetime import datetime, timedelta

import structlog

from bots.platforms.slack.client import Client
from core.domain.keys import Address
from core.ports import Clock

TEXT = "is thinking…"
AGAIN = timedelta(seconds=60)
"""Slack takes it away after two minutes."""
REMEMBERED = 1_000

log = structlog.get_logger(__name__)


class Status:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._shown = OrderedDict[tuple[str, str], datetime]()

    async def show(self, address: Address) -> None:
        """Nothing outside of threads."""
        place, now = (address.chat, address.thread), self._clock.now()
        shown = self._shown.get(place)
        if not address.thread or (shown is not None and now - shown < AGAIN):
            return
        # Before the call: one that is refused is not asked again and again.
        self._shown[place] = now
        if len(self._shown) > REMEMBERED:
            self._shown.popitem(last=False)
        await self._set(address, TEXT)

    async def end(self, address: Address) -> None:
        if self._shown.pop((address.chat, address.thread), None) is None:
            return
        try:
            await self._set(address, "")
        except Exception as error:  # noqa: BLE001 - what was sent before it is sent
            log.debug("status stays", error=type(error).__name__)

    async def _set(self, address: Address, text: str) -> None:
        await self._client.write(
            "assistant.threads.setStatus",
            channel_id=address.chat,
            thread_ts=address.thread,
            status=text,
        )
