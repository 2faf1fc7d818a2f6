"""Mistakes that someone could make in the domain; each must be noticed by its property test."""

import msgspec


class Bug(msgspec.Struct, frozen=True):
    """``old`` stands once in the file, and becomes ``new``."""

    name: str
    file: str
    old: str
    new: str


BUGS = (
    Bug(
        "a late reply is compared by its turn alone",
        "core/domain/decide.py",
        "return turn if turn is not None and turn.step == step else None",
        "return turn",
    ),
    Bug(
        "recovery takes idempotent calls for unsafe ones",
        "core/domain/recovery.py",
        'call.effect == "unsafe"',
        'call.effect != "read_only"',
    ),
    Bug(
        "recovery marks no call",
        "core/domain/recovery.py",
        'call.status == "running" and call.effect == "unsafe"',
        'call.status == "completed" and call.effect == "unsafe"',
    ),
    Bug(
        "a killed call is believed to run on",
        "core/domain/fold.py",
        'if call.status == "running" else call',
        'if call.status == "completed" else call',
    ),
    Bug(
        "attempts are not counted",
        "core/domain/fold.py",
        "attempt=event.attempt,",
        "attempt=1,",
    ),
    Bug(
        "resumes are not counted",
        "core/domain/fold.py",
        "resumes=turn.resumes + resumed,",
        "resumes=turn.resumes,",
    ),
    Bug(
        "progress does not reset the attempts",
        "core/domain/fold.py",
        "replace(turn, calls=calls, attempt=0, waits=0)",
        "replace(turn, calls=calls, waits=0)",
    ),
    Bug(
        "what waits is forgotten at a stop",
        "core/domain/lifecycle.py",
        "if not queue or draft.state.turn is not None:",
        "if not queue or draft.state.phase in (*Phase,)[2:]:",
    ),
    Bug(
        "compaction counts entries and splits calls from results",
        "core/domain/fold_context.py",
        "    kept = tuple(entry for entry in session.entries if not _leaves(entry, event))\n",
        "    kept = session.entries[-4:]\n",
    ),
    Bug(
        "a summary takes the results of the open turn along",
        "core/domain/fold_context.py",
        "return entry.turn < event.first_turn",
        'return entry.turn < event.first_turn or entry.kind == "tool"',
    ),
    Bug(
        "a summary that fails takes turns along",
        "core/domain/fold_context.py",
        "failed = _with(state, session, compaction=None,",
        "failed = _with(state, session, entries=session.entries[-4:], compaction=None,",
    ),
    Bug(
        "an undone compaction brings nothing back",
        "core/domain/fold_context.py",
        "entries=(*older, *session.replaced, *newer)",
        "entries=(*older, *newer)",
    ),
    Bug(
        "the message is taken before the reset",
        "core/domain/decide.py",
        "    ensure_session(draft, wish.inbound.address)\n"
        "    draft.add(ev.MessageReceived(inbound=wish.inbound))\n",
        "    draft.add(ev.MessageReceived(inbound=wish.inbound))\n"
        "    ensure_session(draft, wish.inbound.address)\n",
    ),
    Bug(
        "any event counts as activity",
        "core/domain/lifecycle.py",
        "return session.last_user_at or session.opened_at",
        "return session.updated_at",
    ),
    Bug(
        "a stopped turn leaves the calls that were not started",
        "core/domain/lifecycle.py",
        "for call in turn.open_calls if turn else ():",
        "for call in (c for c in turn.open_calls if c.started_at) if turn else ():",
    ),
    Bug(
        "a failed turn settles nothing",
        "core/domain/outputs.py",
        'return dict.fromkeys(_taken(state.turn.sources), "failed")',
        "return {}",
    ),
    Bug(
        "the note of an interruption goes between a call and its result",
        "core/domain/context.py",
        "messages.append(UserMessage(text))",
        "messages.insert(len(messages) - isinstance(event, ev.TurnInterrupted), UserMessage(text))",
    ),
    Bug(
        "a resumed session has lost its entries",
        "core/domain/fold.py",
        "replace(state.previous, suspended=False,",
        "replace(state.previous, entries=(), suspended=False,",
    ),
    Bug(
        "a vendor's bill is believed as it is",
        "core/domain/decide.py",
        "usage=reply.usage.credible,",
        "usage=reply.usage,",
    ),
    Bug(
        "a made-up tool name is repeated to the vendor",
        "core/domain/context.py",
        "name=_callable(call.name)",
        "name=call.name",
    ),
    Bug(
        "a session expires under an open turn",
        "core/domain/lifecycle.py",
        "if session is None or state.turn is not None or state.queue:",
        "if session is None:",
    ),
    Bug(
        "files are read twice over",
        "core/domain/decide.py",
        "wish.source in {source.seq for source in turn.unread}",
        "wish.source in {source.seq for source in turn.sources}",
    ),
    Bug(
        "a picture that was refused is sent again",
        "core/domain/entries.py",
        "replace(entry, pictures=0, tokens=left)",
        "replace(entry, tokens=left)",
    ),
    Bug(
        "a picture overtakes the message before it",
        "core/domain/lifecycle.py",
        "turn is None or len(state.queue) != 1:",
        "turn is None:",
    ),
)
