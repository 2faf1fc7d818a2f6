"""``/deny``: the owner keeps someone out."""

from core.commands.allow import is_sender, usage, who
from core.commands.base import Command, CommandContext
from core.domain.events import AccessChanged
from core.domain.lifecycle import Draft


def run(draft: Draft, context: CommandContext) -> str:
    platform, user = who(context)
    if not user:
        return usage("deny", context)
    if is_sender(context, platform, user):
        return "You are my owner; you cannot keep yourself out."
    draft.add(AccessChanged(platform=platform, user=user, role="denied"))
    return f"`{platform}:{user}` may not talk to me any more."


COMMAND = Command(name="deny", summary="keep someone out", run=run, owner_only=True)
