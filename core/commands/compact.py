"""``/compact``: have older turns summed up now; it makes no summary itself."""

from core.commands.base import PUT_ASIDE, Command, CommandContext
from core.domain.draft import Draft
from core.domain.room import start_compaction
from core.domain.window import context_tokens, turns_of, window_of

LONGEST = 1_000
"""Characters of what is to be kept."""
NONE_OPEN = "There is nothing to sum up: no conversation is open, your next message starts one."
UNDER_WAY = "I am summing up older turns already, and tell you here what came of it."


def run(draft: Draft, context: CommandContext) -> str:
    session = draft.state.session
    if session is None:
        return NONE_OPEN
    if session.suspended:
        return PUT_ASIDE
    if session.compaction is not None:
        return UNDER_WAY
    keep = context.argument
    if len(keep) > LONGEST:
        return f"Say what to keep in at most {LONGEST} characters; this has {len(keep)}."
    if not start_compaction(draft, "asked", context.inbound.address, keep):
        return _too_short(draft)
    return _started(draft, keep)


def _started(draft: Draft, keep: str) -> str:
    session = draft.state.session
    wanted = session.compaction if session else None
    turns = turns_of(session.entries) if session else ()
    many = sum(turn < wanted.first_turn for turn in turns) if wanted else 0
    older = "1 older turn" if many == 1 else f"{many} older turns"
    above_all = ", and keep above all what you named" if keep else ""
    return (
        f"I sum up {older} of this conversation{above_all}. When it is done I tell you here; you "
        "can write on meanwhile."
    )


def _too_short(draft: Draft) -> str:
    tokens, window = context_tokens(draft.state), window_of(draft.state, draft.policy)
    return (
        f"There is nothing to sum up yet: the newest turns stay as they are, and before them there "
        f"is next to nothing (about {tokens:,} of {window:,} tokens in all)."
    )


COMMAND = Command(name="compact", summary="sum up older turns; say what to keep", run=run)
