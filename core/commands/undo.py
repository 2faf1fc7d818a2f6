"""``/undo``: take back the last compaction or the last exchange; nothing outside is undone."""

from core.commands.base import PUT_ASIDE, Command, CommandContext
from core.domain.draft import Draft
from core.domain.room import undo_compaction, undo_turn
from core.domain.state import Entry, Session
from core.domain.window import turns_of

BUSY = "I am still working. /stop ends that; then /resume comes back here, and /undo takes it back."
NOTHING = "There is nothing to undo here."
EXCHANGE = "Undone: our last exchange. It is out of my view, as if it had not been."
ACTED = "What its tools did outside is not undone."
GIVEN_UP = (
    "The summary that you asked for is given up, since it may tell of it; /compact begins anew."
)


def run(draft: Draft, context: CommandContext) -> str:
    session = draft.state.session
    if draft.state.turn is not None:
        return BUSY
    if session is None:
        return NOTHING
    if session.suspended:
        return PUT_ASIDE
    told = _undo(draft, session)
    asked = session.compaction is not None and session.compaction.reason == "asked"
    given_up = asked and draft.state.session != session
    return f"{told} {GIVEN_UP}" if given_up else told


def _undo(draft: Draft, session: Session) -> str:
    last = _last_exchange(session)
    if session.compacted_at > max((entry.seq for entry in last), default=0):
        undo_compaction(draft)
        return _brought_back(session)
    if not undo_turn(draft):
        return NOTHING
    return f"{EXCHANGE} {ACTED}" if any(entry.acted for entry in last) else EXCHANGE


def _last_exchange(session: Session) -> tuple[Entry, ...]:
    turns = turns_of(session.entries)
    return tuple(entry for entry in session.entries if turns and entry.turn == turns[-1])


def _brought_back(session: Session) -> str:
    many = len(turns_of(session.replaced))
    turns = "1 older turn is" if many == 1 else f"{many} older turns are"
    summed = any(entry.seq == session.compacted_at for entry in session.entries)
    what = "the last summary" if summed else "that older turns left my view"
    return f"Undone: {what}. {turns} back in it, word for word."


COMMAND = Command(name="undo", summary="take back the last summary or exchange", run=run)
