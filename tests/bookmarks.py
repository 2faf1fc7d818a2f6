"""The bookmarks of a platform that is new every time."""

from bots.bookmarks import StoredBookmarks
from storage.memory import MemoryStore


def no_bookmarks(platform: str) -> StoredBookmarks:
    return StoredBookmarks(MemoryStore(), platform)
