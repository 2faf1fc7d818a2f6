"""``/pin``: keep a text in the model's view, whatever else leaves it."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft
from core.domain.entries import estimate_tokens
from core.domain.events import Pinned
from core.domain.state import SessionState
from core.domain.window import window_of

MOST = 20
LONGEST = 1_000
"""Characters; pins are in each request, so all of them have to stay small."""
SHARE = 0.25
"""Of the model's window, that all pins together may take."""
USAGE = "What shall I keep? `/pin TEXT`, or `/pin` as a reply to a message."
FULL = (
    f"There are {MOST} pins, which is as many as I keep. /pins lists them, `/unpin N` makes room."
)
CROWDED = (
    "That would fill more than a quarter of the model's view with pins. /pins lists them, "
    "`/unpin N` makes room; or pin fewer words."
)


def run(draft: Draft, context: CommandContext) -> str:
    text = context.argument.strip() or context.inbound.quote.strip()
    known = [pin.text for pin in draft.state.pins]
    if not text:
        return USAGE
    if text in known:
        return f"That is pinned already, as number {known.index(text) + 1}."
    if len(text) > LONGEST:
        return f"That has {len(text):,} characters; a pin has {LONGEST:,} at most. `/pin TEXT` it."
    if len(known) >= MOST:
        return FULL
    tokens = sum(pin.tokens for pin in draft.state.pins) + estimate_tokens(text)
    if tokens * _scale(draft.state) > SHARE * window_of(draft.state, draft.policy):
        return CROWDED
    draft.add(Pinned(text=text))
    number = len(known) + 1
    return (
        f"Pinned as number {number}: it stays in my view, in this conversation and the next. "
        f"`/unpin {number}` lets it go."
    )


def _scale(state: SessionState) -> float:
    return state.session.scale if state.session else 1.0


COMMAND = Command(name="pin", summary="keep a text, or what you reply to, in my view", run=run)
