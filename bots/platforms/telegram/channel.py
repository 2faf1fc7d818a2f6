"""Says what was promised, in Telegram's own calls; it never repeats one that may have arrived."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import structlog
from telegram import Bot, LinkPreviewOptions, Message, MessageEntity, ReplyParameters
from telegram.constants import ChatAction
from telegram.error import BadRequest, ChatMigrated

from bots.platforms.signs import Signs
from bots.platforms.telegram import faults
from bots.platforms.telegram.moves import Moves
from bots.platforms.telegram.presses import keyboard
from bots.render import telegram as rendering
from core.domain.keys import Address
from core.domain.messages import Attachment, OutboxMessage, Part
from core.errors import PermanentError, StorageError, TransientError

TYPING_SECONDS = 5.0
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)

Result = TypeVar("Result")
Say = Callable[[str, list[MessageEntity]], Awaitable[Result]]

log = structlog.get_logger(__name__)


class TelegramChannel:
    def __init__(self, bot: Bot, signs: Signs, moves: Moves, redact: Callable[[str], str]) -> None:
        self._bot = bot
        self._signs = signs
        self._moves = moves
        self._redact = redact

    def render(self, text: str) -> tuple[Part, ...]:
        return rendering.render(text)

    def preview(self, text: str) -> Part | None:
        return rendering.render_preview(text)

    async def send(self, message: OutboxMessage) -> str:
        sent = await self._call(lambda: self._send(message.address, message.part))
        self._signs.outbound()
        return str(sent.message_id)

    async def edit(self, address: Address, platform_id: str, part: Part) -> None:
        await self._call(lambda: self._edit(address, platform_id, part))

    async def typing(self, address: Address) -> None:
        await self._call(
            lambda: self._bot.send_chat_action(
                self._place(address),
                ChatAction.TYPING,
                message_thread_id=_thread(address),
                read_timeout=TYPING_SECONDS,
            )
        )

    async def lookup(self, message: OutboxMessage, since: datetime) -> str | None:
        """Telegram has no way to ask."""

    async def fetch(self, attachment: Attachment, limit: int) -> bytes:
        """The public Bot API hands out up to 20 MB (https://core.telegram.org/bots/api#getfile)."""
        return await self._call(lambda: self._fetch(attachment, limit))

    async def _fetch(self, attachment: Attachment, limit: int) -> bytes:
        file = await self._bot.get_file(attachment.ref)
        if (file.file_size or 0) > limit:
            raise PermanentError(f"{file.file_size} bytes are more than {limit}")
        return bytes(await file.download_as_bytearray())

    async def _send(self, address: Address, part: Part) -> Message:
        """A group that became a supergroup says its new id and takes nothing: it is sent there,
        where the message that it answers has another id."""
        try:
            return await self._send_to(self._place(address), _reply(address), address, part)
        except ChatMigrated as moved:
            sent = await self._send_to(moved.new_chat_id, None, address, part)
            await self._note(address, moved)
            return sent

    async def _note(self, address: Address, moved: ChatMigrated) -> None:
        try:
            await self._moves.note(address.chat, str(moved.new_chat_id))
        except StorageError as error:
            log.warning("a group's move not stored", error=str(error))

    async def _send_to(
        self, chat: int, reply: ReplyParameters | None, address: Address, part: Part
    ) -> Message:
        async def say(text: str, entities: list[MessageEntity]) -> Message:
            return await self._bot.send_message(
                chat,
                text,
                entities=entities,
                link_preview_options=_NO_PREVIEW,
                message_thread_id=_thread(address),
                reply_parameters=reply,
                reply_markup=keyboard(part.buttons),
            )

        return await _or_plain(say, part)

    async def _edit(self, address: Address, platform_id: str, part: Part) -> None:
        async def say(text: str, entities: list[MessageEntity]) -> None:
            try:
                await self._bot.edit_message_text(
                    text,
                    self._place(address),
                    int(platform_id),
                    entities=entities,
                    link_preview_options=_NO_PREVIEW,
                    reply_markup=keyboard(part.buttons),
                )
            except BadRequest as error:
                if not faults.is_not_modified(error):
                    raise

        await _or_plain(say, part)

    def _place(self, address: Address) -> int:
        return int(self._moves.now(address.chat))

    async def _call(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """A refused token is not tried again: Telegram deletes bots that hammer."""
        if self._signs.refused:
            raise TransientError("Telegram refuses the bot token", faults.REFUSED_SECONDS)
        try:
            result = await call()
        except PermanentError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever broke, the call may have arrived
            match faults.fault_of(error):
                case "refused":
                    self._signs.enter("refused")
                case "unsent":
                    self._signs.unreached(faults.described(error, self._redact))
                case "conflict" | "slow down" | "moved" | "rejected":
                    self._signs.heard()
                case "unknown":
                    pass
            # Without its context, which may show what has to be redacted.
            raise faults.translated(error, self._redact) from None
        self._signs.heard()
        return result


async def _or_plain(say: Say[Result], part: Part) -> Result:
    """A 400 proves that nothing was sent, and has no code that tells whether the entities were
    its reason: whatever it was, the plain twin is tried once."""
    entities = _entities(part)
    try:
        return await say(part.text, entities)
    except BadRequest as error:
        if not entities or not faults.is_rejected(error):
            raise
        log.warning("marked-up text refused, sent plain", error=str(error))
        return await say(part.plain, [])


def _entities(part: Part) -> list[MessageEntity]:
    markup: list[dict[str, Any]] = part.markup or []
    return list(MessageEntity.de_list(markup))


def _thread(address: Address) -> int | None:
    return int(address.thread) if address.thread else None


def _reply(address: Address) -> ReplyParameters | None:
    if not address.reply_to:
        return None
    return ReplyParameters(int(address.reply_to), allow_sending_without_reply=True)
