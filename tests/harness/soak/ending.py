"""How a run of the crowd ends: all is waited for, then counted; it looks only from outside."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from storage.store import SqlStore
from tests.harness.soak.books import Books
from tests.harness.soak.crowd import Person
from tests.harness.soak.judge import Account
from tests.harness.soak.words import DOUBTFUL
from tests.standins.openai import OpenAIStandIn
from tests.standins.telegram import TelegramStandIn

TIDY_SECONDS = 5.0
LOOK_SECONDS = 0.1
SETTLED_WITHIN = 240.0
"""The longest wait before an attempt is a minute, and a turn may have two such ahead."""
MAX_FAILED = 0.01


class Stage(Protocol):
    """Where the crowd talks."""

    @property
    def telegram(self) -> TelegramStandIn: ...

    @property
    def model(self) -> OpenAIStandIn: ...

    async def store(self) -> SqlStore: ...

    async def settled(self, patience: float) -> None: ...


async def settles(stage: Stage) -> tuple[float, list[str]]:
    """After how many seconds nobody waited for anything any more, and what is wrong with that."""
    began = time.monotonic()
    faults: list[str] = []
    try:
        async with asyncio.timeout(SETTLED_WITHIN):
            while await _reminders_wait(stage):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
        await stage.settled(SETTLED_WITHIN)
    except TimeoutError:
        faults.append(f"not settled within {SETTLED_WITHIN:.0f} s")
    return time.monotonic() - began, faults


async def _reminders_wait(stage: Stage) -> bool:
    """However late they are rung on a machine that is busy."""
    store = await stage.store()
    waiting = await store.due(datetime.now(UTC) + timedelta(days=1))
    return any(timer.kind == "reminder" for timer in waiting)


async def tidies(stage: Stage) -> None:
    """Until cancelled. What the stand-ins keep of calls that are over would fill the memory of this
    process."""
    while True:
        await asyncio.sleep(TIDY_SECONDS)
        for standin in (stage.telegram, stage.model):
            with standin.changes.lock:
                for call in standin.calls:
                    if call.outcome != "open":
                        call.params, call.effect = {}, None
        stage.model.requests.clear()


def charges_of(effects: Iterable[str]) -> Counter[str]:
    """How often each message was charged for."""
    return Counter(line.split()[1] for line in effects if line.startswith("charge "))


def totals(accounts: Sequence[Account], books: Books) -> list[str]:
    """P1: what was taken is what was sent, and each has one end."""
    sent = sum(account.sent for account in accounts)
    failed = sum(account.failed for account in accounts)
    ends = Counter(books.outcomes.values())
    found = [f"{sent} messages were sent, {ends.total()} taken"] if sent != ends.total() else []
    found += [f"{ends['pending']} messages are still pending"] if ends["pending"] else []
    found += [f"{failed} of {sent} failed"] if failed > MAX_FAILED * sent else []
    return found


def unexpected(codes: Sequence[int]) -> list[str]:
    """A life ends because it was killed or asked to, never by itself."""
    odd = Counter(codes) - Counter({0: len(codes), -signal.SIGKILL: len(codes)})
    return [f"{count} lives ended with {code}" for code, count in odd.items()]


def unsure(people: Sequence[Person]) -> int:
    """How many answers say «I think»."""
    return sum(text.startswith(DOUBTFUL) for person in people for text in person.user.bot_texts())
