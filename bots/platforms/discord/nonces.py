"""Names each promised message once and for all, so that Discord can tell a repeated send."""

import hashlib
import secrets

from bots.platforms import Bookmarks

SALT = "salt of nonces"
"""Not a channel's bookmark, but it has to live just as long. Ids of rows come again in a database
that was made anew; without it the answer would be taken for one of the old database's."""
CHARACTERS = 25


class Nonces:
    def __init__(self, bookmarks: Bookmarks) -> None:
        self._bookmarks = bookmarks
        self._salt = ""

    async def of(self, row: str) -> str:
        """Raises StorageError."""
        if not self._salt:
            self._salt = await self._known_salt()
        name = f"{self._salt} {row}"
        return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:CHARACTERS]

    async def _known_salt(self) -> str:
        known = await self._bookmarks.read()
        if SALT in known:
            return known[SALT]
        made = secrets.token_hex(8)
        await self._bookmarks.put(SALT, made)
        return made
