"""What people are called; it asks Slack once for each, and does without an answer."""

import asyncio
from collections import OrderedDict

import structlog

from bots.platforms.slack.client import Answer, Client
from bots.platforms.slack.faults import fault_of

LOOK_SECONDS = 1.0
"""A message waits for it, and Slack for the message, three seconds at most."""
REMEMBERED = 10_000

log = structlog.get_logger(__name__)


class Names:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._names = OrderedDict[str, str]()

    async def of(self, user: str) -> str:
        """Empty where Slack does not say."""
        if user in self._names:
            return self._names[user]
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                name = await self._asked(user)
        except Exception as error:  # noqa: BLE001 - a message goes without a name, never lost
            log.debug("no name", user=user, error=type(error).__name__)
            if fault_of(error) != "rejected":
                return ""
            name = ""
        self._names[user] = name
        if len(self._names) > REMEMBERED:
            self._names.popitem(last=False)
        return name

    async def _asked(self, user: str) -> str:
        answer = await self._client.read("users.info", user=user)
        profile: Answer = answer["user"].get("profile") or {}
        return str(profile.get("display_name") or profile.get("real_name") or "")
