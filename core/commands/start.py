"""``/start``: what this is, and the claim of its first owner."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft
from core.domain.events import AccessChanged

_HELLO = (
    "Hello! I am an assistant that keeps its place: our conversation survives restarts and "
    "crashes. Just write to me; /help lists the commands."
)
_OWNER = "You are my owner now. `/allow ID` lets someone else in, `/deny ID` keeps them out."
_WHO = "Only people whom my owner allows may use me, and you are one of them."


def run(draft: Draft, context: CommandContext) -> str:
    if context.claims:
        inbound = context.inbound
        platform, user = inbound.address.platform, inbound.person
        draft.add(AccessChanged(platform=platform, user=user, role="owner"))
        return f"{_HELLO}\n\n{_OWNER}"
    return f"{_HELLO}\n\n{_OWNER if context.role == 'owner' else _WHO}"


COMMAND = Command(name="start", summary="what I am and who may use me", run=run)
