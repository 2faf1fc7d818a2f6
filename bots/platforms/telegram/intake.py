"""Reads one update at a time and has it stored, whichever way it came; it writes in no chat."""

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

import structlog
from msgspec.structs import replace
from telegram import Bot, CallbackQuery, Update

from bots.platforms.taker import Taker
from bots.platforms.telegram import moves, presses, translate
from bots.platforms.telegram.moves import Moves
from bots.platforms.telegram.translate import Me
from core.domain.messages import Inbound
from core.errors import StorageError
from core.ports import Clock

ANSWER_SECONDS = 5.0

log = structlog.get_logger(__name__)


class Intake:
    def __init__(self, taker: Taker, bot: Bot, known: Moves, clock: Clock) -> None:
        self._taker = taker
        self._bot = bot
        self._moves = known
        self._clock = clock
        self._me: Me | None = None
        self._answers = set[asyncio.Task[None]]()

    @property
    def ready(self) -> bool:
        return self._me is not None

    def introduce(self, me: Me) -> None:
        """Until then nothing can be taken: mentions of us could not be told from others."""
        self._me = me

    async def take(self, raw: Mapping[str, Any]) -> None:
        """When it returns, Telegram may forget the update. Raises StorageError: it may not."""
        if self._me is None:
            raise StorageError("the bot does not know its own name yet")
        update, taken = self._read(raw, self._me)
        if update is None:
            return
        if move := moves.told(update.message):
            await self._moves.note(*move)
        if taken is not None:
            await self._taker.take(self._at_home(taken))
        if update.callback_query is not None:
            self._answer(update.callback_query, "" if taken else presses.OUT_OF_SIGHT)

    async def close(self) -> None:
        answers = tuple(self._answers)
        for answer in answers:
            answer.cancel()
        await asyncio.gather(*answers, return_exceptions=True)

    def _read(self, raw: Mapping[str, Any], me: Me) -> tuple[Update | None, Inbound | None]:
        """One that cannot be read must not stop those behind it."""
        try:
            update = Update.de_json(dict(raw), self._bot)
            if query := update.callback_query:
                return update, presses.inbound(query, update.update_id, me, self._clock.now())
            return update, translate.inbound(update, me)
        except Exception:
            log.exception(
                "update left out: it cannot be read, which is a bug of this adapter",
                update_id=raw.get("update_id"),
                error_id=secrets.token_hex(4),
            )
            return None, None

    def _at_home(self, taken: Inbound) -> Inbound:
        address = replace(taken.address, chat=self._moves.first(taken.address.chat))
        return replace(taken, address=address)

    def _answer(self, query: CallbackQuery, text: str) -> None:
        """Ends the button's waiting, best effort: it ends by itself, too, and nothing behind it
        waits for this."""
        answer = asyncio.create_task(self._answered(query.id, text))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)

    async def _answered(self, query_id: str, text: str) -> None:
        try:
            await self._bot.answer_callback_query(query_id, text, read_timeout=ANSWER_SECONDS)
        except Exception as error:  # noqa: BLE001 - a strange answer breaks the SDK in any way
            log.info("press not answered", error=type(error).__name__)
