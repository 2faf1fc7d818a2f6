"""How long it takes from a message on disk, taken by a process that runs no turns, until another
process asks the model for it: told by NOTIFY, and looking each second alone."""

import asyncio
import random
import re
import time
from pathlib import Path

import msgspec

from benchmarks.services import DURABLE, Town, it_holds, town
from tests.postgres import running_postgres
from tests.standins.base import Call
from tests.standins.openai import COMPLETIONS
from tests.standins.openai_reply import last_user_text

STAMPED = ("track_commit_timestamp=on",)
THINKS = 0.1
"""Seconds that the model takes."""
PAUSES = (0.15, 0.45)
"""Seconds between two messages, by chance, so that they keep step with nothing."""
PEOPLE = 40
"""Who write in turn, so that each is through with the last message before the next."""
WARM = 5
"""Messages before any counts."""
DEAF = "?pgbouncer=true"
"""As behind a pooler with no way past it: nothing is told, so that it looks each second."""
WORD = re.compile(r"w\d+")
_COMMITS = """
SELECT data::text, extract(epoch FROM pg_xact_commit_timestamp(xmin))
FROM events WHERE type = 'MessageReceived'
"""


class Wakeups(msgspec.Struct, frozen=True):
    """Seconds, a message each, in order of size; ``polled`` is empty where it is not measured."""

    told: list[float]
    polled: list[float]


async def measure(folder: Path, messages: int, polled: int) -> Wakeups:
    """``polled``: how many of them without NOTIFY."""
    with running_postgres(*DURABLE, *STAMPED) as server:
        async with town(folder, server) as place:
            talk = _Talk(place)
            await place.start("intake", ROLE="intake")
            await place.start("worker", ROLE="worker")
            told = await talk.waits(messages)
            if not polled:
                return Wakeups(told, [])
            await place.stop(place.services[-1])
            await place.start("deaf", DEAF, ROLE="worker")
            return Wakeups(told, await talk.waits(polled))


class _Talk:
    def __init__(self, place: Town) -> None:
        self._place = place
        self._dice = random.Random(1)
        self._asked: dict[str, float] = {}
        """Unix time."""
        self._answered: set[str] = set()
        self._written = 0
        place.model.before = self._think
        place.telegram.after = self._hear

    async def waits(self, messages: int) -> list[float]:
        """Of so many, when a few are answered."""
        for _ in range(WARM):
            await self._are_answered({await self._say()})
        words = [await self._say() for _ in range(messages)]
        await self._are_answered(set(words))
        stored = {
            found[0]: float(str(at))
            for text, at in await self._place.rows(_COMMITS)
            if (found := WORD.search(str(text)))
        }
        return sorted(self._asked[word] - stored[word] for word in words)

    async def _are_answered(self, words: set[str]) -> None:
        await it_holds(lambda: self._answered >= words, "everybody is answered")

    async def _say(self) -> str:
        await asyncio.sleep(self._dice.uniform(*PAUSES))
        self._written += 1
        word = f"w{self._written}"
        self._place.telegram.user(1000 + self._written % PEOPLE).says(word)
        return word

    async def _think(self, call: Call) -> None:
        if call.method == COMPLETIONS:
            self._asked.setdefault(last_user_text(call.params["body"]), time.time())
            await asyncio.sleep(THINKS)

    def _hear(self, call: Call) -> None:
        if call.method in ("sendMessage", "editMessageText"):
            self._answered.update(WORD.findall(str(call.params.get("text", ""))))
