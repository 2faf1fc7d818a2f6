"""``/allow``: the owner lets someone in."""

from core.commands.base import Command, CommandContext
from core.domain.events import AccessChanged
from core.domain.lifecycle import Draft

USAGE = (
    "Whom? `/{name} 12345` for a user id on this platform, or with the platform before it: "
    "`/{name} telegram:12345`."
)


def run(draft: Draft, context: CommandContext) -> str:
    platform, user = who(context)
    if not user:
        return USAGE.format(name="allow")
    draft.add(AccessChanged(platform=platform, user=user, role="allowed"))
    return f"`{platform}:{user}` may talk to me now."


def who(context: CommandContext) -> tuple[str, str]:
    """The platform and user that the argument names; an empty user for none or several."""
    words = context.argument.split()
    if len(words) != 1:
        return "", ""
    platform, colon, user = words[0].partition(":")
    return (platform, user) if colon else (context.inbound.address.platform, platform)


COMMAND = Command(name="allow", summary="let someone talk to me", run=run, owner_only=True)
