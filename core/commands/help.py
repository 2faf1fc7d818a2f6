"""``/help``: the commands, from the table that was found."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft


def run(draft: Draft, context: CommandContext) -> str:
    shown = [
        f"- /{command.name}: {command.summary}"
        for _, command in sorted(context.commands.items())
        if context.role == "owner" or not command.owner_only
    ]
    return "\n".join(["**What I understand**, at any time:", "", *shown])


COMMAND = Command(name="help", summary="this list", run=run)
