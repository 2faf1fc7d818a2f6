"""``/pins``: what is pinned, with its numbers."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft

SHOWN = 200
"""Characters of each."""


def run(draft: Draft, context: CommandContext) -> str:
    lines = [f"{n}. {_line(pin.text)}" for n, pin in enumerate(draft.state.pins, 1)]
    if not lines:
        return (
            "Nothing is pinned. `/pin TEXT`, or `/pin` as a reply to a message, keeps it in view."
        )
    return "\n".join(["**Always in my view:**", "", *lines, "", "`/unpin N` lets one go."])


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]} …"


COMMAND = Command(name="pins", summary="what is pinned", run=run)
