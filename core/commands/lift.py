"""``/lift``: the owner lets a day's limits rest."""

from core.commands.allow import who_is_named
from core.commands.base import Command, CommandContext
from core.domain.draft import Draft
from core.domain.events import CapsLifted

_UNTIL = "until midnight UTC. /retry answers the newest of what was refused."
_USAGE = (
    "For whom? `/lift {platform}:{person}` for yourself, `/lift 12345` for a user id on this "
    "platform, `/lift all` for the limit of all of us together."
)


def run(draft: Draft, context: CommandContext) -> str:
    if context.argument.lower() == "all":
        draft.add(CapsLifted())
        return f"The limit of all of us together is lifted {_UNTIL}"
    platform, user = who_is_named(context)
    if not user:
        inbound = context.inbound
        return _USAGE.format(platform=inbound.address.platform, person=inbound.person)
    draft.add(CapsLifted(platform=platform, user=user))
    return f"The limits of `{platform}:{user}` are lifted {_UNTIL}"


COMMAND = Command(name="lift", summary="lift a limit for today", run=run, owner_only=True)
