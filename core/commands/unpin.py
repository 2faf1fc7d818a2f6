"""``/unpin``: let go of what was pinned."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft
from core.domain.events import Unpinned
from core.domain.state import Pin


def run(draft: Draft, context: CommandContext) -> str:
    pins = draft.state.pins
    if not pins:
        return "Nothing is pinned."
    gone = _named(pins, context.argument.strip().casefold())
    if not gone:
        return f"Which one? `/unpin N`, from 1 to {len(pins)}, or `/unpin all`; /pins lists them."
    draft.add(*(Unpinned(pin=pin.seq) for pin in gone))
    left = len(draft.state.pins)
    what = "It is" if len(gone) == 1 else f"All {len(gone)} are"
    return f"{what} not pinned any more" + (f"; {left} left, numbered anew." if left else ".")


def _named(pins: tuple[Pin, ...], name: str) -> tuple[Pin, ...]:
    if name == "all":
        return pins
    return tuple(pin for number, pin in enumerate(pins, 1) if str(number) == name)


COMMAND = Command(name="unpin", summary="let a pin go, or all", run=run)
