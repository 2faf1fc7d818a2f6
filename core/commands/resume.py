"""``/resume``: reopen the session that was put aside, or closed last."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft
from core.domain.events import SessionReopened
from core.domain.lifecycle import close_if_over
from core.domain.state import Session


def run(draft: Draft, context: CommandContext) -> str:
    state = draft.state
    if state.turn is not None:
        return "I am still working here. /stop ends it, then /resume goes back."
    session = state.session
    if session is not None and session.suspended:
        return _reopen(draft, session)
    close_if_over(draft)
    if draft.state.previous is None:
        return "There is no earlier conversation to go back to."
    return _reopen(draft, draft.state.previous)


def _reopen(draft: Draft, session: Session) -> str:
    draft.add(SessionReopened(session_id=session.session_id))
    return (
        f"We are back in the conversation of {session.opened_at:%Y-%m-%d %H:%M} UTC "
        f"(`{session.session_id}`)."
    )


COMMAND = Command(name="resume", summary="go back to the conversation before", run=run)
