"""Reads what was said in a channel; it takes nothing for the end of a history but Discord's word.

Each message is built by itself: one that breaks the SDK is left out, and hides none of the others.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import discord
import msgspec
import structlog

from bots.platforms.discord.client import Client
from bots.platforms.discord.faults import described, fault_of, seconds_of
from core.ports import Clock

WINDOW = timedelta(hours=24)
"""What is older was missed for good: its answer would surprise more than help."""
MOST = 100
"""So many messages Discord gives at once."""
PAGE_SECONDS = 10.0
_CLOSED = (10003, 50001, 50013)
"""An unknown channel, and two ways to be kept out of one.
https://docs.discord.com/developers/topics/opcodes-and-status-codes#json"""

Raw = dict[str, Any]

log = structlog.get_logger(__name__)


class UnreadError(Exception):
    """It is to be read later. ``seconds`` to wait; None for growing pauses."""

    def __init__(self, detail: str, seconds: float | None) -> None:
        super().__init__(detail)
        self.seconds = seconds


class Page(msgspec.Struct, frozen=True):
    """In the order in which it was said. ``last`` is the id up to which it reaches, whether or not
    all before it could be read; 0 at the end of the history."""

    messages: tuple[discord.Message, ...] = ()
    last: int = 0


class History:
    def __init__(
        self,
        get_client: Callable[[], Awaitable[Client]],
        clock: Clock,
        redact: Callable[[str], str],
    ) -> None:
        self._get_client = get_client
        self._clock = clock
        self._redact = redact

    async def page(self, chat: int, after: int) -> Page:
        """What follows that id within the window. Empty for a channel that is gone, or closed to
        us. Raises UnreadError, and the SDK's error when the token is refused."""
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                return await self._page(chat, after)
        except Exception as error:
            detail = described(error, self._redact)
            if isinstance(error, discord.HTTPException) and is_closed(error):
                log.info("history cannot be read", channel=chat, error=detail)
                return Page()
            if fault_of(error) == "refused":
                raise
            # Without its context, which may show what has to be redacted.
            raise UnreadError(detail, seconds_of(error)) from None

    async def _page(self, chat: int, after: int) -> Page:
        client = await self._get_client()
        first = max(after, self._oldest(client))
        found = await said_in(client, chat, after=first)
        later = {number: raw for number, raw in found.items() if number > first}
        return Page(tuple(_built(client, chat, later)), max(later, default=0))

    def _oldest(self, client: Client) -> int:
        """The beginning of the window, by Discord's clock."""
        return discord.utils.time_snowflake((client.now or self._clock.now()) - WINDOW)


async def said_in(client: Client, chat: int, after: int | None = None) -> dict[int, Raw]:
    """By their ids, in the order in which it was said: what follows ``after``, or the last. Raises
    what the SDK does, and ValueError or LookupError for an answer that is not Discord's."""
    answer: object = await client.http.logs_from(chat, MOST, after=after)
    found = msgspec.convert(answer, list[Raw])
    return dict(sorted((int(raw["id"]), raw) for raw in found))


def is_closed(error: discord.HTTPException) -> bool:
    """By Discord's own word: whatever stands in between may refuse as well, for a while."""
    return fault_of(error) == "rejected" and error.code in _CLOSED


def _built(client: Client, chat: int, found: Mapping[int, Raw]) -> Iterator[discord.Message]:
    for number, raw in found.items():
        try:
            yield client.message_of(chat, raw)
        except Exception:
            log.exception(
                "message left out: the SDK cannot read it",
                channel=chat,
                message=number,
                error_id=secrets.token_hex(4),
            )
