"""Sets a reminder by returning its event; never starts a timer itself."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

from core.domain.events import ReminderSet
from core.ports import ToolContext, ToolOutput
from core.tools import FunctionTool, failed

LONGEST = timedelta(days=366)
LONGEST_TEXT = 1000
MOST_OPEN = 50
"""Open reminders are part of every snapshot, whose size must not grow without end."""


class RemindArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, msgspec.Meta(description="What to tell the user then, in their words.")]
    seconds: Annotated[
        float | msgspec.UnsetType,
        msgspec.Meta(description="Seconds from now. Give this or at, not both."),
    ] = msgspec.UNSET
    at: Annotated[
        str,
        msgspec.Meta(
            description="ISO 8601 time, for example 2026-05-05T14:30:00+02:00; UTC without offset."
        ),
    ] = ""


async def remind_me(arguments: RemindArguments, context: ToolContext) -> ToolOutput:
    """Idempotent by its id: the same call sets the same reminder."""
    text = arguments.text.strip()
    due = _due(arguments, context.now())
    if not text:
        return failed("The text is empty. Say what the user is to be reminded of.")
    if len(text) > LONGEST_TEXT:
        return failed(f"The text is too long. Use at most {LONGEST_TEXT} characters.")
    if context.open_reminders >= MOST_OPEN:
        return failed(f"There are {MOST_OPEN} open reminders, which is the most there can be.")
    if isinstance(due, str):
        return failed(due)
    reminder = ReminderSet(
        reminder_id=context.call_key, due_at=due, text=text, address=context.address
    )
    return ToolOutput(value=f"Reminder set for {_shown(due)}: {text}", events=(reminder,))


def _due(arguments: RemindArguments, now: datetime) -> datetime | str:
    """Or what is wrong with it."""
    at = arguments.at.strip()
    seconds = None if arguments.seconds is msgspec.UNSET else arguments.seconds
    if bool(at) == bool(seconds) and (at or seconds is None):
        return "Give either seconds (from now) or at (an ISO 8601 time), not both."
    due = _parsed(at) if at else _after(now, seconds or 0.0)
    if isinstance(due, str):
        return due
    if due <= now:
        return f"That time is not in the future: it is {_shown(now)} now. Ask the user when."
    if due - now > LONGEST:
        return "That is more than a year ahead. Reminders reach one year at most."
    return due


def _after(now: datetime, seconds: float) -> datetime | str:
    try:
        return now + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return "That is no number of seconds up to one year. Reminders reach one year at most."


def _parsed(text: str) -> datetime | str:
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return f"{text!r} is no ISO 8601 time. Write it like 2026-05-05T14:30:00+02:00."


def _shown(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


TOOL = FunctionTool(
    name="remind_me",
    description=(
        "Sends the user a reminder later, also after a restart. Use seconds for «in 10 minutes», "
        "at for a date or a time of day."
    ),
    arguments=RemindArguments,
    act=remind_me,
    effect="idempotent",
    timeout=5.0,
)
