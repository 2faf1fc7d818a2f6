"""The sentences that the service itself says in a chat; each helps, none shows an internal."""

from datetime import datetime

from core.domain.events import (
    CancelReason,
    CapNeared,
    Compacted,
    CompactFailure,
    CompactionFailed,
    Event,
    FailReason,
    OpenReason,
    TurnCancelled,
    TurnFailed,
)
from core.domain.messages import Button
from core.domain.spending import Limit, ends

EMPTY_ANSWER = "_(The model gave no text. /retry asks again.)_"
CUT_ANSWER = "_(Cut at the model's output limit. Say “go on” for the rest.)_"
ANSWER_CAPPED = "_(This answer was far too long; the rest of it is not shown.)_"
STRANGER = (
    "Sorry, this is a private assistant and I may not talk with you. "
    "If you run it, send `/start CODE` with the code from its log; "
    "otherwise ask its owner to let you in."
)
_PUT_ASIDE = (
    "so I have put it aside. Your next message starts a new conversation; /resume brings this one "
    "back and /retry tries the last message again."
)
NO_PROGRESS = (
    "I could not finish this: it broke off {attempts} times without getting any further, "
    f"{_PUT_ASIDE}"
)
TOO_OFTEN = f"I could not finish this: I was interrupted {{resumes}} times over it, {_PUT_ASIDE}"
SET_ASIDE = (
    "_(Our earlier conversation could not be read. It is kept for whoever runs me, and this is a "
    "new one: please send again what was not answered yet; its reminders will not come. "
    "Reference: {reference})_"
)
CONTEXT_MOVED = (
    "_(The older part of this conversation is out of my view from here on: it was too much for "
    "the model. Nothing is deleted; /undo brings it back, /new starts afresh.)_"
)

DONE_UNTIL_THEN = (
    "What I did for it is done, and /retry would do it again; “go on” goes on from it."
)
PINS_TAKE_ROOM = "What is pinned takes room as well; /pins shows it."
ANSWERED_ALONE = (
    "_(The model's provider refused this together with what we said before, so I answered it "
    "alone.)_"
)
ANSWERED_WITHOUT_ALL = (
    "_(With all that we said before this did not fit into the model's window, so I answered it "
    "without the older part. /compact sums that up, /new starts afresh.)_"
)
_NOT_SUMMED_UP: dict[CompactFailure, str] = {
    "failed": "the model that should do it failed",
    "useless": "what came of it was hardly shorter",
    "no_progress": "it broke off each time",
    "over_budget": "today's limit on what models may cost is reached",
}

TRY_AGAIN = Button("Try again", "/retry")
GO_BACK = Button("Bring it back", "/resume")
START_NEW = Button("New conversation", "/new")
GO_ON = Button("Go on", "go on")

_MENDED = "When it is mended, /retry answers your message."
_FAILURES: dict[FailReason, str] = {
    "try_again": "I cannot reach the model right now. Your message is kept; /retry tries again.",
    "never": "The model cannot be used as it is set up; whoever runs me finds the reason in the "
    f"log. {_MENDED}",
    "too_long": "This is too long for the model, even without all that we said before. It is left "
    "out of the conversation; please send it in smaller parts, or /new starts afresh.",
    "unstorable": "I had to stop: my database does not take what came of this, and never will. "
    "What I did until then is done. Please put it differently, or in smaller parts.",
    "refused": "The model's provider refused this request. It is left out of the conversation from "
    "here on; please put it differently. If that does not help, /new starts afresh.",
}

_BUTTONS: dict[FailReason | CancelReason, tuple[Button, ...]] = {
    "try_again": (TRY_AGAIN,),
    "never": (TRY_AGAIN,),
    "too_long": (START_NEW,),
    "refused": (START_NEW,),
    "no_progress": (TRY_AGAIN, GO_BACK),
    "steps": (GO_ON,),
}


def buttons(event: Event) -> tuple[Button, ...]:
    """What may be done about it, under the sentence that tells it."""
    match event:
        case TurnFailed(reason=reason) | TurnCancelled(reason=reason):
            return _BUTTONS.get(reason, ())
        case _:
            return ()


def failure(kind: FailReason, error_id: str, hint: str = "") -> str:
    """``hint`` is for whoever can mend it, and says what is wrong with it."""
    said = f"{hint} {_MENDED}" if hint else _FAILURES[kind]
    return f"{said} (error {error_id})" if error_id else said


def compacted(event: Compacted) -> str:
    """What left the model's view, and what it is worth."""
    turns = "1 older turn" if event.turns == 1 else f"{event.turns} older turns"
    cost = f", for ${event.usage.cost:.4f}" if event.usage.cost else ""
    return (
        f"_(I have summed up {turns} of this conversation: {event.tokens_before:,} tokens became "
        f"{event.tokens_after:,}{cost}. Nothing is deleted; /undo takes it back.)_"
    )


def not_compacted(event: CompactionFailed) -> str:
    error = f" (error {event.error_id})" if event.error_id else ""
    why = _NOT_SUMMED_UP[event.reason]
    return (
        f"_(I wanted to sum up the older part of this conversation, but {why}; it stays as it "
        f"was.{error})_"
    )


def over_budget(limit: Limit, cap: float, who: str, at: datetime) -> str:
    """``who`` is «platform:person», for the owner's command."""
    lift = "all" if limit == "service" else who
    return (
        f"{_LIMITS[limit].format(amount(limit, cap))} is reached. It ends at "
        f"{ends(at.date()):%Y-%m-%d %H:%M} UTC; before that my owner can lift it with "
        f"`/lift {lift}`. What you wrote is kept; /retry then answers the newest of it."
    )


def near_cap(event: CapNeared) -> str:
    spent, cap = amount(event.limit, event.spent), amount(event.limit, event.cap)
    whose = "all of us together" if event.limit == "service" else "you"
    share = f"{min(event.spent / event.cap, 1):.0%}"
    return (
        f"_(Today {whose} have used {spent} of {cap}, {share} of what a day may cost. At the "
        "limit I answer no more until midnight UTC; /usage shows how it stands.)_"
    )


def amount(limit: Limit, number: float) -> str:
    return f"{number:,.0f} tokens" if limit == "tokens" else _dollars(number)


def _dollars(number: float) -> str:
    return f"${number:,.4f}" if 0 < number < _SMALL else f"${number:,.2f}"


_SMALL = 0.1

_LIMITS: dict[Limit, str] = {
    "usd": "Today's limit of {} for one person",
    "tokens": "Today's limit of {} for one person",
    "service": "Today's limit of {} for all of us together",
}


def reminder(text: str) -> str:
    return f"Reminder: {text}"


def new_session(reason: OpenReason) -> str | None:
    """Said once, with the message that finds its session over."""
    match reason:
        case "idle":
            why = "It was quiet here for a while"
        case "daily":
            why = "A new day"
        case _:
            return None
    return f"_({why}, so this is a new conversation. /resume goes back to the one before.)_"


def picking_up(step: int) -> str:
    return f"_(I was interrupted; picking up at step {step}.)_"


def waiting(until: datetime) -> str:
    return f"_(The model's rate limit is reached; I go on by myself at {until:%H:%M:%S} UTC.)_"


def cancelled(reason: CancelReason, where: str) -> str | None:
    match reason:
        case "steps":
            return f"{where} I had reached the limit of steps for one answer. Say “go on” if I may."
        case "interrupt":
            return f"_({where} I take your new message instead; repeat the old one if it matters.)_"
        case "stop" | "new":
            return None
