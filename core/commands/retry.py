"""``/retry``: answer the last message anew."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft
from core.domain.lifecycle import retry_last

_SURE = "Trying again. What tools did outside the first time is not undone."


def run(draft: Draft, context: CommandContext) -> str:
    if draft.state.turn is not None:
        return "I am still working on it. /stop ends it."
    acted = draft.state.session is not None
    return _SURE if acted and retry_last(draft) else "There is nothing to answer again here."


COMMAND = Command(name="retry", summary="answer the last message again", run=run)
