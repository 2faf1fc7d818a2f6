"""What the model's stand-in says in end-to-end tests: a function of what it is shown."""

from typing import Any

from core.domain.context import NOTE
from tests.standins.openai_reply import Reply, ToolCall, text_of

HANG = "please hang"
TOOLS = "use the tools"
FIRST = "what did I say first"
UNKNOWN = "outcome unknown"
WORD_PAUSE = 0.12


def respond(request: dict[str, Any]) -> Reply:
    said, results = newest(request)
    if said == HANG:
        return Reply(text="Thinking about it for ever and ever", hang_after=2, delay_per_chunk=0.3)
    if said == TOOLS and not results:
        calls = (ToolCall("look", id="call_a"), ToolCall("charge", {"what": "tea"}, id="call_b"))
        return Reply(text="Let me see.", tool_calls=calls, delay_per_chunk=0.1)
    if said == TOOLS:
        doubt = any(UNKNOWN in result for result in results)
        return Reply(text="Charged, I think." if doubt else "Charged once.")
    if said == FIRST:
        first = next(m for m in request["messages"] if m["role"] == "user")
        return Reply(text=f"You said: {_spoken(first)}")
    return Reply(text=f"You wrote {said} and I read it well", delay_per_chunk=WORD_PAUSE)


def newest(request: dict[str, Any]) -> tuple[str, list[str]]:
    """The newest words of the user, and what tools gave since."""
    said, results = "", list[str]()
    for message in request["messages"]:
        match message["role"]:
            case "user" if spoken := _spoken(message):
                said, results = spoken, []
            case "tool":
                results.append(text_of(message["content"]))
            case _:
                pass
    return said, results


def _spoken(message: dict[str, Any]) -> str:
    """The newest words, without the notes that the service adds."""
    paragraphs = text_of(message["content"]).split("\n\n")
    return next((p for p in reversed(paragraphs) if not p.startswith(NOTE)), "")
