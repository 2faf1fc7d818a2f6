"""How the demo model sums up; pure, and every item is something that was said."""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from core.domain.messages import ModelRequest, SystemMessage
from core.domain.sections import FACTS, GONE, SECTIONS
from core.domain.summary import INSTRUCTIONS

GOAL, _, _, DONE, _, LAST, KEPT = SECTIONS
LONGEST_ITEM = 200
MOST_ITEMS = 20
_BLOCK = r"<{0}>\n(.*)\n</{0}>"
_SO_FAR = re.compile(_BLOCK.format("summary-so-far"), re.DOTALL)
_CONVERSATION = re.compile(_BLOCK.format("conversation"), re.DOTALL)
_KEEP = re.compile(r"\nThe user asks to keep above all: (.+)")
_LINE = re.compile(r"(?P<who>User|Assistant|Result): (?P<text>.*)|\(calls (?P<tool>\S+) with .*\)")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_FACT = re.compile(
    r"\b(?:my [\w' -]+ (?:is|are)|i(?: am|'m|’m)|i (?:like|love|hate|prefer|live|work|want|need)"
    r"|call me|remember|always|never)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\bmy name(?:'s| is) ", re.IGNORECASE)
_VERBATIM = re.compile(
    r"https?://\S+|\b[\w.+-]+@[\w-]+\.\w[\w.]*|\b\d{4}-\d{2}-\d{2}\b|\b[A-Z]{2,}-\d+\b"
)


class Said(msgspec.Struct):
    who: str
    text: str


def is_asked(request: ModelRequest) -> bool:
    return request.messages[:1] == (SystemMessage(INSTRUCTIONS),)


def summary_of(request: ModelRequest) -> str:
    text = request.messages[-1].text
    before = _sections(_found(_SO_FAR, text))
    said = list(_said(_found(_CONVERSATION, text)))
    asks = [each.text for each in said if each.who == "User"]
    facts = [fact for ask in asks for fact in _facts(ask)]
    known = [fact for fact in before.get(FACTS, []) if not _is_renamed(fact, facts)]
    now = {
        GOAL: [*before.get(GOAL, []), *asks][:1],
        FACTS: [*known, *facts],
        DONE: _newest([*before.get(DONE, []), *_done(said)]),
        LAST: _last(said) or before.get(LAST, []),
        KEPT: _newest([*before.get(KEPT, []), *_KEEP.findall(text), *_verbatim(said)]),
        GONE: [fact for fact in before.get(FACTS, []) if fact not in known],
    }
    return "\n".join(_lines(now.items()))


def _lines(sections: Iterable[tuple[str, Sequence[str]]]) -> Iterator[str]:
    for name, items in sections:
        if items:
            yield f"## {name}"
            yield from (f"- {_short(item)}" for item in dict.fromkeys(items))


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""


def _sections(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("#"):
            name = line.lstrip("# ")
        elif line.startswith("- "):
            found.setdefault(name, []).append(line[2:])
    return found


def _said(conversation: str) -> Iterator[Said]:
    last: Said | None = None
    for line in conversation.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            if last is not None and line.strip():
                last.text = f"{last.text} {line.strip()}"
            continue
        if last is not None:
            yield last
        last = Said(found["who"] or "Call", found["tool"] or found["text"])
    if last is not None:
        yield last


def _facts(ask: str) -> Iterator[str]:
    for sentence in _SENTENCE.findall(ask):
        if _FACT.search(sentence) and not sentence.endswith("?"):
            yield sentence.strip()


def _is_renamed(fact: str, facts: list[str]) -> bool:
    return bool(_NAME.search(fact)) and any(_NAME.search(new) and new != fact for new in facts)


def _done(said: list[Said]) -> Iterator[str]:
    """Results stand behind all calls of their step, in the same order."""
    calls: list[str] = []
    for each in said:
        if each.who == "Call":
            calls.append(each.text)
        elif each.who == "Result":
            yield f"`{calls.pop(0) if calls else 'a tool'}`: {each.text}"


def _last(said: list[Said]) -> list[str]:
    asked = [number for number, each in enumerate(said) if each.who == "User"]
    if not asked:
        return []
    answered = any(each.who == "Assistant" for each in said[asked[-1] :])
    return [f"“{_short(said[asked[-1]].text)}”, {'answered' if answered else 'not answered yet'}"]


def _verbatim(said: list[Said]) -> Iterator[str]:
    for each in said:
        yield from _VERBATIM.findall(each.text)


def _newest(items: list[str]) -> list[str]:
    return [*dict.fromkeys(items)][-MOST_ITEMS:]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_ITEM else f"{text[: LONGEST_ITEM - 1]}…"
