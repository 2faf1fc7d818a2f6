"""``/allow``: the owner lets someone in."""

from core.commands.base import Command, CommandContext
from core.domain.events import AccessChanged
from core.domain.lifecycle import Draft

_USAGE = (
    "Whom? `/{name} 12345` for a user id on this platform, or with the platform before it: "
    "`/{name} {platform}:12345`."
)


def run(draft: Draft, context: CommandContext) -> str:
    platform, user = who(context)
    if not user:
        return usage("allow", context)
    if is_sender(context, platform, user):
        return "You are my owner; you are in already."
    draft.add(AccessChanged(platform=platform, user=user, role="allowed"))
    return f"`{platform}:{user}` may talk to me now."


def usage(name: str, context: CommandContext) -> str:
    return _USAGE.format(name=name, platform=context.inbound.address.platform)


def who(context: CommandContext) -> tuple[str, str]:
    """The platform and user that the argument names; an empty user for none or several.

    An id alone is one of this platform, and of this workspace where it names none.
    """
    words = context.argument.split()
    if len(words) != 1:
        return "", ""
    platform, colon, user = words[0].partition(":")
    if colon:
        return platform, user
    here = context.inbound.address
    named = here.workspace and "." not in platform
    return here.platform, f"{here.workspace}.{platform}" if named else platform


def is_sender(context: CommandContext, platform: str, user: str) -> bool:
    return (platform, user) == (context.inbound.address.platform, context.inbound.person)


COMMAND = Command(name="allow", summary="let someone talk to me", run=run, owner_only=True)
