"""``/status``: where the conversation stands."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft
from core.domain.state import Session, Turn


def run(draft: Draft, context: CommandContext) -> str:
    state = draft.state
    lines = [f"- state: {state.phase}", f"- model: {draft.policy.model}"]
    if state.session is not None:
        lines = [f"- session: `{state.session.session_id}`", *lines, *_usage(state.session)]
    if state.turn is not None:
        lines += _turn(state.turn)
    lines.append(f"- waiting messages: {len(state.queue)}")
    if state.reminders:
        due = ", ".join(f"{r.due_at:%Y-%m-%d %H:%M:%S}" for r in state.reminders[:5])
        lines.append(f"- reminders: {len(state.reminders)} ({due} UTC)")
    return "\n".join(lines)


def _turn(turn: Turn) -> list[str]:
    running = ", ".join(call.call.name for call in turn.open_calls)
    lines = [
        f"- turn {turn.number}, step {turn.step}, since {turn.started_at:%Y-%m-%d %H:%M:%S} UTC",
    ]
    if running:
        lines.append(f"- tools at work: {running}")
    if turn.wait_until is not None:
        lines.append(f"- waits until {turn.wait_until:%H:%M:%S} UTC")
    return lines


def _usage(session: Session) -> list[str]:
    usage = session.usage
    cost = f"${usage.cost:.4f}" if usage.cost else "no price known"
    return [
        f"- tokens: {usage.total} ({usage.prompt} in, {usage.completion} out)",
        f"- cost: {cost}",
        f"- in the model's view: {len(session.entries)} entries",
    ]


COMMAND = Command(name="status", summary="where we stand", run=run)
