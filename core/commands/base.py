"""What a slash command is: a pure function of the state; it stores and sends nothing itself."""

from collections.abc import Callable, Mapping

import msgspec

from core.domain.draft import Draft
from core.domain.events import Role
from core.domain.messages import Inbound
from core.domain.spending import Bill

PUT_ASIDE = "This conversation is put aside. /resume brings it back; then ask again."


class CommandContext(msgspec.Struct, frozen=True, kw_only=True):
    """``claims`` says that the message proves its sender to be the owner-to-be; ``owner`` is
    «platform:user», empty while there is none."""

    inbound: Inbound
    argument: str
    role: Role | None
    claims: bool
    owner: str = ""
    commands: Mapping[str, "Command"]
    bill: Bill | None = None
    """For a command that asks for it."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """``run`` adds its events to the draft and returns the reply, in Markdown."""

    name: str
    summary: str
    run: Callable[[Draft, CommandContext], str]
    owner_only: bool = False
    asks_bill: bool = False
