"""``/deny``: the owner keeps someone out."""

from core.commands.allow import change_access
from core.commands.base import Command, CommandContext
from core.domain.draft import Draft


def run(draft: Draft, context: CommandContext) -> str:
    return change_access(draft, context, "denied", "`{who}` may not talk to me any more.")


COMMAND = Command(name="deny", summary="keep someone out", run=run, owner_only=True)
