"""What the model's stand-in says in end-to-end tests, from what it is shown."""

import re
from collections import Counter
from typing import Any

from core.domain.context import NOTE, REMINDER, SUMMARY
from core.domain.summary import INSTRUCTIONS
from tests.standins.faults import Refuse, too_many
from tests.standins.openai_reply import Reply, ToolCall, text_of

HANG = "please hang"
SLOW = "take your time"
LONG = "tell me all of it"
TOOLS = "use the tools"
SLOW_TOOL = "use the slow tool"
REMIND = "remind me soon"
REMINDED = "the kettle"
BUSY = "you will be busy"
BUSY_SECONDS = 90
DIE = "do not come back"
LEAP = "jump until it works"
ENDLESS = "never be done"
JOB = "do the long job"
JOB_STEPS = 10
FIRST = "what did I say first"
NAME = "my name is Ada"
WHO = "what is my name"
STORIES = tuple(
    f"Story {number}. {NAME if number == 1 else 'It goes on'}{' and then' * 40}."
    for number in range(1, 7)
)
LONG_STORY = f"The last story{' and then' * 300}."
UNKNOWN = "outcome unknown"
PICTURE = "[picture: "
WORD_PAUSE = 0.12
PARTS = 5
SPECIAL = (HANG, SLOW, LONG, TOOLS, SLOW_TOOL, REMIND, BUSY, DIE, LEAP, ENDLESS, JOB, FIRST, WHO)
_ENDED = (f"{NOTE} This was stopped", f"{NOTE} This could not")
_NOT_SAID = (NOTE, PICTURE, SUMMARY, "## ")
_OF_ECHO = re.compile(r"You wrote (.*?) and I read it well")


def echo(*said: str) -> str:
    return f"You wrote {' + '.join(said)} and I read it well"


def echoed(text: str) -> list[str]:
    """The messages that an answer says it has read."""
    return [said for found in _OF_ECHO.findall(text) for said in found.split(" + ")]


class Script:
    """``asked`` counts how often the model was asked with these newest words. A request hangs, or
    is told that the model is busy, the first time only."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, request: dict[str, Any]) -> Reply | Refuse:
        if is_summary(request):
            return Reply(text=_summary(request), delay_per_chunk=0.05)
        said, results = newest(request)
        key = " + ".join(said)
        self.asked[key] += 1
        again = self.asked[key] > 1
        if HANG in said and not again:
            return Reply(text="Thinking about it for ever", hang_after=2, delay_per_chunk=0.2)
        if BUSY in said and not again:
            return too_many(BUSY_SECONDS)
        return _call(said, results) or _answer(said, results, request)


def is_summary(request: dict[str, Any]) -> bool:
    return text_of(request["messages"][0]["content"]) == INSTRUCTIONS


def _summary(request: dict[str, Any]) -> str:
    """The name, wherever it is said, and nothing else."""
    told = NAME in text_of(request["messages"][1]["content"])
    facts = f"- {NAME}" if told else "- nothing is known"
    return f"## Goal\n- talk\n\n## Facts and preferences\n{facts}"


def newest(request: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What the user wrote since the last answer, or the last end of a turn without one, with how
    many pictures; and what tools gave for it."""
    said, results, pictures = list[str](), list[str](), 0
    for message in request["messages"]:
        match message["role"]:
            case "user":
                for paragraph in text_of(message["content"]).split("\n\n"):
                    if paragraph.startswith(_ENDED):
                        said, results, pictures = [], [], 0
                    elif not paragraph.startswith(_NOT_SAID):
                        said.append(paragraph.partition(f"\n{PICTURE}")[0])
                pictures += pictures_of(message["content"])
            case "assistant" if not message.get("tool_calls"):
                said, results, pictures = [], [], 0
            case "tool":
                results.append(text_of(message["content"]))
            case _:
                pass
    return [*said, *([with_pictures(pictures)] if pictures else [])], results


def pictures_of(content: Any) -> int:
    parts: list[dict[str, Any]] = [] if isinstance(content, str) else content
    return sum(part["type"] == "image_url" for part in parts)


def with_pictures(many: int) -> str:
    return f"I see {many} pictures"


def _call(said: list[str], results: list[str]) -> Reply | None:
    done = len(results)
    if TOOLS in said and not done:
        return _calls(ToolCall("look"), ToolCall("charge", {"what": "tea"}))
    if SLOW_TOOL in said and not done:
        return _calls(ToolCall("charge", {"what": "cake", "seconds": 1.0}))
    if REMIND in said and not done:
        return _calls(ToolCall("remind_me", {"text": REMINDED, "seconds": 1.5}))
    if DIE in said:
        return _calls(ToolCall("die"))
    if LEAP in said:
        return _calls(ToolCall("leap"))
    if ENDLESS in said or (JOB in said and done < JOB_STEPS):
        return _calls(ToolCall("look"))
    return None


def _calls(*calls: ToolCall) -> Reply:
    return Reply(text="Let me see.", tool_calls=calls, delay_per_chunk=0.05)


def _answer(said: list[str], results: list[str], request: dict[str, Any]) -> Reply:
    reminders = [text for text in said if text.startswith(REMINDER)]
    parts = [f"Do not forget {text.rpartition(': ')[2]}." for text in reminders]
    if TOOLS in said or SLOW_TOOL in said:
        doubt = any(UNKNOWN in result for result in results)
        parts.append("Charged, I think." if doubt else "Charged once.")
    if REMIND in said:
        parts.append("I shall remind you.")
    if JOB in said:
        parts.append("The job is done.")
    if FIRST in said:
        parts.append(f"You said first: {_first(request)}")
    if WHO in said:
        shown = [text_of(m["content"]) for m in request["messages"] if m["role"] == "user"]
        known = any(NAME in text for text in shown)
        summed_up = any(text.startswith(SUMMARY) for text in shown)
        parts.append(f"{'Your name is Ada' if known else 'I forgot'}, {summed_up=}.")
    if LONG in said:
        parts.append(long_text())
    plain = [text for text in said if text not in SPECIAL and text not in reminders]
    plain += [text for text in said if text in (HANG, SLOW, BUSY)]
    parts += [echo(*plain)] if plain else []
    pause = WORD_PAUSE * (3 if SLOW in said else 1)
    at_once = LONG in said or any(text in (*STORIES, LONG_STORY) for text in said)
    return Reply(text="\n\n".join(parts), delay_per_chunk=0.0 if at_once else pause)


def long_text() -> str:
    """Five messages' worth: each paragraph is a part of its own."""
    line = "word " * 700
    return "\n\n".join(f"Part {number}. {line.strip()}." for number in range(1, PARTS + 1))


def _first(request: dict[str, Any]) -> str:
    first = next(m for m in request["messages"] if m["role"] == "user")
    paragraphs = text_of(first["content"]).split("\n\n")
    return next((p for p in paragraphs if not p.startswith(NOTE)), "")
