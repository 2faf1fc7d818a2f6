"""``/new``: close the session and open the next at once."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft
from core.domain.events import SessionClosed
from core.domain.lifecycle import cancel_turn, describe_turn, open_session
from core.domain.state import SessionState


def run(draft: Draft, context: CommandContext) -> str:
    stopped = _stopped(draft.state)
    cancel_turn(draft, "new")
    session = draft.state.session
    if session is not None:
        draft.add(SessionClosed(session_id=session.session_id, reason="new"))
    open_session(draft, "new")
    back = " /resume goes back to the one before." if session is not None else ""
    return f"{stopped}A new conversation.{back}"


def _stopped(state: SessionState) -> str:
    return f"{describe_turn(state.turn)}\n\n" if state.turn else ""


COMMAND = Command(name="new", summary="start a new conversation", run=run)
