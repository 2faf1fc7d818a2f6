"""Who may talk to the agent: one gate for messages, commands and every other path."""

import hmac

from core.domain.events import Role
from core.domain.messages import Inbound
from core.ports import Directory

CLAIM_FACT = "claim code"
EVERYONE = "*"


class Access:
    """``allowed`` are the operator's own entries, «platform:user» each, or «*» for everyone; on the
    platforms that are ``trusted`` everyone is the operator."""

    def __init__(
        self, directory: Directory, allowed: frozenset[str], trusted: frozenset[str] = frozenset()
    ) -> None:
        self._directory = directory
        self._allowed = allowed
        self._trusted = trusted

    async def role(self, inbound: Inbound) -> Role | None:
        """None for a stranger. Raises StorageError."""
        if inbound.trusted:
            return "owner"
        platform, user = inbound.address.platform, inbound.person
        known = await self._directory.role(platform, user)
        if known is not None:
            return known
        listed = EVERYONE in self._allowed or f"{platform}:{user}" in self._allowed
        return "allowed" if listed else None

    async def owner(self) -> str:
        """«platform:user»; empty while there is none. Raises StorageError."""
        for grant in await self._directory.grants():
            if grant.role == "owner":
                return f"{grant.platform}:{grant.user}"
        return ""

    async def runs_this(self, platform: str, user: str) -> bool:
        """Whether this person may be told what is wrong with the service, and how to mend it.
        Raises StorageError."""
        return platform in self._trusted or await self.owner() == f"{platform}:{user}"

    async def claims(self, inbound: Inbound, code: str) -> bool:
        """Whether this is the first to send the right code, in a DM. Raises StorageError."""
        if not code or inbound.address.chat_type != "dm" or await self.owner():
            return False
        wanted = await self._directory.fact(CLAIM_FACT)
        return bool(wanted) and hmac.compare_digest(code.encode(), (wanted or "").encode())

    async def open_claim(self) -> str | None:
        """The code while it can be used, "" before there is one; None once there is an owner.
        Raises StorageError."""
        return None if await self.owner() else await self._directory.fact(CLAIM_FACT) or ""

    async def claim_code(self, fresh: str) -> str | None:
        """The code that makes the first person the owner; None once there is one.

        ``fresh`` becomes the code where there was none; of two processes that start at once both
        get the same. Raises StorageError.
        """
        if await self.owner():
            return None
        return await self._directory.first_fact(CLAIM_FACT, fresh)
