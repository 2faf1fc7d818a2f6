"""``/allow``: the owner lets someone in."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft
from core.domain.events import AccessChanged, Role

USAGE = (
    "Whom? `/{name} 12345` for a user id on this platform, or with the platform before it: "
    "`/{name} {platform}:12345`."
)


LONGEST = 200
"""Characters; no platform's ids are as long, and no index of a database takes any length."""


def run(draft: Draft, context: CommandContext) -> str:
    return change_access(draft, context, "allowed", "`{who}` may talk to me now.")


def change_access(draft: Draft, context: CommandContext, role: Role, reply: str) -> str:
    """Of the one person whom the argument names; the owner stays the owner."""
    platform, user = who_is_named(context)
    if not user:
        name = "allow" if role == "allowed" else "deny"
        return USAGE.format(name=name, platform=context.inbound.address.platform)
    who = f"{platform}:{user}"
    if who in (context.owner, f"{context.inbound.address.platform}:{context.inbound.person}"):
        return f"`{who}` is my owner; that stays so."
    draft.add(AccessChanged(platform=platform, user=user, role=role))
    return reply.format(who=who)


def who_is_named(context: CommandContext) -> tuple[str, str]:
    """The platform and user that the argument names; an empty user for none or several, and for
    one that nobody can have.

    An id alone is one of this platform, and of this workspace where it names none.
    """
    words = context.argument.split()
    if len(words) != 1 or len(words[0]) > LONGEST:
        return "", ""
    platform, colon, user = words[0].partition(":")
    if colon:
        return platform, user
    here = context.inbound.address
    named = here.workspace and "." not in platform
    return here.platform, f"{here.workspace}.{platform}" if named else platform


COMMAND = Command(name="allow", summary="let someone talk to me", run=run, owner_only=True)
