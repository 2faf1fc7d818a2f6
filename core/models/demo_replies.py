"""What the demo model says and which tools it calls; pure, and only tools that it was offered."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec

from core.domain.messages import ToolCall, ToolMessage
from core.models.demo_view import Due, View

WHO = (
    "I am the built-in **demo model**: no key, no network, no wit. Set `MODEL` and a vendor's key "
    "for a real one."
)
TRY = """Three things to try:

- `what time is it`
- `remind me in 10 seconds to stretch`
- `count slowly to 20` (then kill me at 7 and start me again)"""

UNITS = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "day": 86400}
_SPAN = r"in (?P<number>\d+(?:\.\d+)?|an?) (?P<unit>seconds?|secs?|minutes?|mins?|hours?|days?)"
_TIME = re.compile(
    r"\b(?:what time is it|what(?:'s|’s| is) the time|tell me the time)\b"
    r"(?:.*?\bin (?P<zone>[a-z_]+/[a-z_/]+))?",
    re.IGNORECASE,
)
_REMIND = re.compile(rf"\bremind me {_SPAN}(?: to| that| about|:)? (?P<text>.+)", re.IGNORECASE)
_REMIND_LAST = re.compile(rf"\bremind me (?:to |that |about )?(?P<text>.+) {_SPAN}", re.IGNORECASE)
_COUNT = re.compile(r"\bcount(?: slowly)?(?: up)? to (?P<to>\d{1,4})\b", re.IGNORECASE)
_MY_NAME = re.compile(r"\bwhat(?:'s|’s| is) my name\b|\bwho am i\b", re.IGNORECASE)
_NAMED = re.compile(r"\bmy name(?:'s| is) \w", re.IGNORECASE)
_GREETING = re.compile(r"(?:hi|hello|hey|good (?:morning|day|evening))\b", re.IGNORECASE)
_ABOUT = re.compile(r"\b(?:who|what) are you\b|\bwhat can you do\b|^help\b", re.IGNORECASE)


def calls_for(view: View, offered: Collection[str]) -> tuple[ToolCall, ...]:
    """() once calls were made: the answer comes next, whatever came of them."""
    if view.called:
        return ()
    wishes = [wish for ask in view.asks if (wish := _wish(ask)) and wish[0] in offered]
    return tuple(
        ToolCall(f"demo_{view.position}_{number}", name, msgspec.json.encode(arguments).decode())
        for number, (name, arguments) in enumerate(wishes)
    )


def answer(view: View) -> str:
    parts = [
        *_after_interruption(view),
        *(_reminder(due) for due in view.due),
        *(_result(result) for result in view.results),
        *(_said(ask, view) for ask in view.asks if not (view.called and _wish(ask))),
    ]
    return "\n\n".join(parts) or f"{WHO}\n\n{TRY}"


def _after_interruption(view: View) -> Iterator[str]:
    if view.interrupted:
        yield "_I was interrupted in the middle of this, and went on where I was._"
    for name in view.unknown:
        yield (
            f"`{name}` was interrupted and **its outcome is unknown**. Please check before it is "
            "done again; I have not repeated it."
        )


def _reminder(due: Due) -> str:
    return f"⏰ **{due.text}**" + (" _(late: I was not running)_" if due.late else "")


def _result(result: ToolMessage) -> str:
    match result.name:
        case "now":
            return f"🕑 {result.text}"
        case "remind_me":
            return f"📌 {result.text}"
        case "count_slowly":
            return f"Counted, slowly: {result.text}"
        case name:
            return f"`{name}` says: {result.text}"


def _said(ask: str, view: View) -> str:
    for pattern, reply in _REPLIES.items():
        if pattern.search(ask):
            return reply(view)
    if wish := _wish(ask):
        return f"For that I need the tool `{wish[0]}`, which I was not given."
    quote = ask if len(ask) <= 300 else f"{ask[:300]}…"
    return f"You said: “{quote}”\n\n{WHO}\n\n{TRY}"


def _greet(view: View) -> str:
    return f"Hello{f' {view.user_name}' if view.user_name else ''}! {WHO}\n\n{TRY}"


def _about(_: View) -> str:
    return f"{WHO}\n\n{TRY}"


def _tell_name(view: View) -> str:
    if view.user_name:
        return f"Your name is **{view.user_name}**."
    return "You have not told me in this conversation. Say `my name is …`."


def _note_name(view: View) -> str:
    return f"Nice to meet you, **{view.user_name}**. I will know it after a restart, too."


_REPLIES: Mapping[re.Pattern[str], Callable[[View], str]] = {
    _MY_NAME: _tell_name,
    _NAMED: _note_name,
    re.compile(rf"^{_GREETING.pattern}", re.IGNORECASE): _greet,
    _ABOUT: _about,
}


def _wish(ask: str) -> tuple[str, dict[str, Any]] | None:
    if found := _REMIND.search(ask) or _REMIND_LAST.search(ask):
        text = found["text"].strip().rstrip(".!")
        return "remind_me", {"seconds": _seconds(found), "text": text}
    if found := _COUNT.search(ask):
        return "count_slowly", {"to": int(found["to"])}
    if found := _TIME.search(ask):
        zone = found["zone"]
        return "now", {"zone": zone.title() if zone.islower() else zone} if zone else {}
    return None


def _seconds(found: re.Match[str]) -> float:
    number = 1.0 if found["number"].lower().startswith("a") else float(found["number"])
    return number * UNITS[found["unit"].lower().rstrip("s")]
