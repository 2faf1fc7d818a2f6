"""What the people of the soak write, and what the model's stand-in makes of it; each message names
its writer and its number, and no answer names another's."""

import re
from typing import Any, Literal

from core.domain.context import REMINDER
from tests.harness.scripted import UNKNOWN, WORD_PAUSE, echo, newest
from tests.standins.openai_reply import Reply, ToolCall, text_of

Kind = Literal["plain", "slow", "tools", "slowtool", "remind"]
REMIND_SECONDS = 2.0
TOOL_SECONDS = {"tools": 0.05, "slowtool": 1.0}
SLOWER = 3
CHARGED, DOUBTFUL = "Charged", "Charged, I think"
SEEING = "Let me see."
FORGET = "Do not forget"
NAME = re.compile(r"p\d\d\.\d{3,}")


def name(person: int, number: int) -> str:
    return f"p{person:02}.{number:03}"


def written(person: int, number: int, kind: Kind) -> str:
    return f"{name(person, number)} {kind}"


def owner_of(said: str) -> str:
    """``p07`` of ``p07.012``."""
    return said.partition(".")[0]


class Words:
    """The stand-in's answers. ``mixed`` are requests that showed the model words of two people."""

    def __init__(self) -> None:
        self.asked = 0
        self.mixed: list[str] = []

    def __call__(self, request: dict[str, Any]) -> Reply:
        self.asked += 1
        said, results = newest(request)
        self._look(request)
        calls = [] if results else [call for text in said for call in _calls(text)]
        if calls:
            return Reply(text=SEEING, tool_calls=tuple(calls), delay_per_chunk=0.02)
        slow = any(text.endswith(" slow") for text in said)
        pause = WORD_PAUSE * (SLOWER if slow else 0.5)
        return Reply(text="\n\n".join(_answer(said, results)), delay_per_chunk=pause)

    def _look(self, request: dict[str, Any]) -> None:
        shown = " ".join(text_of(message["content"] or "") for message in request["messages"])
        owners = {owner_of(found) for found in NAME.findall(shown)}
        if len(owners) > 1:
            self.mixed.append(f"the model was shown words of {sorted(owners)}")


def _calls(text: str) -> list[ToolCall]:
    what, _, kind = text.partition(" ")
    match kind:
        case "tools" | "slowtool":
            seconds = TOOL_SECONDS[kind]
            return [ToolCall("look"), ToolCall("charge", {"what": what, "seconds": seconds})]
        case "remind":
            return [ToolCall("remind_me", {"text": what, "seconds": REMIND_SECONDS})]
        case _:
            return []


def _answer(said: list[str], results: list[str]) -> list[str]:
    due = [text.rpartition(": ")[2] for text in said if text.startswith(REMINDER)]
    own = [text.partition(" ")[0] for text in said if not text.startswith(REMINDER)]
    charged = any(text.endswith((" tools", " slowtool")) for text in said)
    doubt = any(UNKNOWN in result for result in results)
    parts = [f"{FORGET} {what}." for what in due]
    parts += [f"{DOUBTFUL if doubt else CHARGED}."] if charged else []
    return [*parts, echo(*own)] if own else parts
