"""``stillhere doctor --ledger``: what became of every message taken; it reads, and changes nothing.

It works beside a running service, and on what a killed one left.
"""

import msgspec

from bots.cli.common import open_store
from bots.settings import Settings
from core.domain.ledger import Ledger
from core.ports import Unowed

MOST_SHOWN = 20
"""Messages to begin with: who has more of them than that has one cause for all."""


class Account(msgspec.Struct, frozen=True):
    """Lines to print, and whether every message is accounted for."""

    lines: tuple[str, ...]
    balanced: bool


async def account(settings: Settings) -> Account:
    """Raises ConfigurationError, StorageError."""
    store = await open_store(settings, read_only=True)
    try:
        ledger = await store.ledger()
        balanced = all(one.balanced for one in ledger.values())
        lines = [line(platform, one) for platform, one in ledger.items()]
        lines += [] if balanced else _suspects(await store.unowed(MOST_SHOWN))
        lines += _undelivered(await store.undelivered())
    finally:
        await store.close()
    return Account(tuple(lines or ("no message was ever taken",)), balanced)


def line(platform: str, one: Ledger) -> str:
    counted = one.accepted - one.missing
    parts = (
        f"{one.answered} answered + {one.failed} failed + {one.discarded} discarded"
        f" + {one.pending} pending"
    )
    return f"{platform}: {one.accepted} accepted; {parts} = {counted}; {one.verdict}"


def _suspects(found: tuple[Unowed, ...]) -> list[str]:
    if not found:
        return ["no message is pending that its session does not owe; see docs/accounting.md"]
    head = f"pending, though their sessions owe fewer (oldest first, at most {MOST_SHOWN}):"
    return [
        head,
        *(
            f"  {one.platform}  update {one.update_id}  {one.key}"
            f"  since {one.since:%Y-%m-%d %H:%M:%S} UTC"
            for one in found
        ),
    ]


def _undelivered(found: dict[str, dict[str, int]]) -> list[str]:
    return [
        f"{platform}, not delivered: "
        + ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        for platform, states in sorted(found.items())
    ]
