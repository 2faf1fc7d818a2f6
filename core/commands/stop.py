"""``/stop``: end the turn, say where it stood, put the session aside."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft
from core.domain.lifecycle import cancel_turn, describe_turn, suspend

_NEXT = (
    "Your next message starts a new conversation; /resume brings this one back, "
    "/retry does the last message again."
)
_QUEUED = "What you wrote meanwhile goes on in a new conversation; /resume brings this one back."


def run(draft: Draft, context: CommandContext) -> str:
    turn = draft.state.turn
    if turn is None:
        return "Nothing is running."
    where = describe_turn(turn)
    cancel_turn(draft, "stop")
    suspend(draft, "stop")
    return f"{where} {_QUEUED if draft.state.queue else _NEXT}"


COMMAND = Command(name="stop", summary="stop what I am doing", run=run)
