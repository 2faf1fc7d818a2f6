"""Asks Telegram for updates; it moves the offset past those alone that are stored."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from telegram import Bot, Update

from bots.platforms.patience import Patience, TokenRefusedError
from bots.platforms.signs import Signs
from bots.platforms.telegram.client import RAW
from bots.platforms.telegram.intake import Intake
from bots.platforms.telegram.lanes import lanes_of
from bots.platforms.telegram.translate import WANTED

POLL = timedelta(seconds=30)
AT_ONCE = timedelta()
SIDE_BY_SIDE = 16
"""Chats whose updates are stored at the same time: each waits for the database several times, and
what waits together is stored together."""


class Poller:
    def __init__(self, bot: Bot, intake: Intake, signs: Signs, patience: Patience) -> None:
        self._bot = bot
        self._intake = intake
        self._signs = signs
        self._patience = patience
        self._offset: int | None = None

    async def run(self) -> None:
        """Until it is cancelled. Raises TokenRefusedError."""
        await self._patience.insist(self._end_webhook)
        while True:
            updates = await self._patience.insist(self._poll)
            if self._signs.refused:
                raise TokenRefusedError
            await self._take(updates)

    async def _take(self, updates: Sequence[Update]) -> None:
        """Those of one chat in their order. Raises TokenRefusedError."""
        places = asyncio.Semaphore(SIDE_BY_SIDE)
        left = {update.update_id for update in updates}
        beyond = max(left, default=-1) + 1

        async def take(lane: Sequence[Update]) -> None:
            async with places:
                for update in lane:
                    await self._patience.insist(partial(self._intake.take, update.api_kwargs[RAW]))
                    self._signs.receiving()
                    left.discard(update.update_id)
                    self._offset = max(self._offset or 0, min(left, default=beyond))

        takes = [asyncio.create_task(take(lane)) for lane in lanes_of(updates)]
        try:
            await asyncio.gather(*takes)
        finally:
            for task in takes:
                task.cancel()
            await asyncio.gather(*takes, return_exceptions=True)

    async def _end_webhook(self) -> None:
        await self._bot.delete_webhook(drop_pending_updates=False)

    async def _poll(self) -> tuple[Update, ...]:
        """An answer confirms all below the offset, so after an empty one there is nothing left to
        confirm; ids start anew, possibly lower, after a week without updates
        (https://core.telegram.org/bots/api#update). Until one was answered it does not wait for
        news, so that it soon is known whether we are heard."""
        updates = await self._bot.get_updates(
            offset=self._offset,
            timeout=POLL if self._signs.is_receiving else AT_ONCE,
            allowed_updates=WANTED,
        )
        self._signs.receiving()
        if not updates:
            self._offset = None
        return updates
