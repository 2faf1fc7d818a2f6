"""Knows which group became which supergroup, so that its conversation goes on; it sends nothing.

A group that becomes a supergroup gets a new id. Here it keeps its first one for ever: in the
session's key and in every address. https://core.telegram.org/bots/api#responseparameters
"""

from telegram import Message

from bots.platforms import Bookmarks


class Moves:
    """Kept as bookmarks: of the new id, the first one."""

    def __init__(self, bookmarks: Bookmarks) -> None:
        self._bookmarks = bookmarks
        self._first: dict[str, str] = {}
        self._now: dict[str, str] = {}

    async def load(self) -> None:
        """Raises StorageError."""
        for new, first in (await self._bookmarks.read()).items():
            self._learn(first, new)

    async def note(self, first: str, new: str) -> None:
        """Returns when it is on disk. Raises StorageError."""
        if self._first.get(new) != first:
            await self._bookmarks.put(new, first)
            self._learn(first, new)

    def first(self, chat: str) -> str:
        """The name under which the core knows it."""
        return self._first.get(chat, chat)

    def now(self, chat: str) -> str:
        """Where it is found at Telegram."""
        return self._now.get(chat, chat)

    def _learn(self, first: str, new: str) -> None:
        self._first[new] = first
        self._now[first] = new


def told(message: Message | None) -> tuple[str, str] | None:
    """The first and the new id, where Telegram says it: in the old chat, and again in the new."""
    if message is None:
        return None
    here = str(message.chat.id)
    if message.migrate_to_chat_id:
        return here, str(message.migrate_to_chat_id)
    if message.migrate_from_chat_id:
        return str(message.migrate_from_chat_id), here
    return None
