"""Keeps a platform's bookmarks among the facts of the store; it reads no chat."""

from collections.abc import Mapping

from core.ports import Directory


class StoredBookmarks:
    """``bots.platforms.Bookmarks``."""

    def __init__(self, directory: Directory, platform: str) -> None:
        self._directory = directory
        self._start = f"bookmark of {platform}: "

    async def read(self) -> Mapping[str, str]:
        found = await self._directory.facts(self._start)
        return {name.removeprefix(self._start): place for name, place in found.items()}

    async def put(self, chat: str, place: str) -> None:
        await self._directory.set_fact(self._start + chat, place)
