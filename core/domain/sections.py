"""A summary as its sections, and how it is kept from growing; it knows no conversation."""

import re
from collections import deque
from collections.abc import Iterable

from core.domain.entries import BYTES_A_TOKEN, TOKENS_AN_ENTRY

FACTS = "Facts and preferences"
GONE = "No longer true"
SECTIONS = (
    "Goal",
    "Decisions",
    FACTS,
    "Done, with results",
    "Open",
    "Last request and how far it is",
    "Keep verbatim",
)
MOST_FACTS = 100
SHARE_OF_FACTS = 0.6
"""Of the whole summary, when there is too much of everything."""
LONGEST_LINE = 1_200
SHARE_OF_A_LINE = 0.25
"""Bytes, and of the whole: one line does not take the place of all others."""

_HEADING = re.compile(r"^#{1,6}\s*(.+?)\s*:?\s*$|^\*\*([^*]+?):?\*\*:?\s*$")
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+(.*\S)\s*$")

Sections = dict[str, list[str]]
"""The lines under each heading, those before the first one under «»."""


def parsed(text: str) -> Sections:
    """Whatever a model makes of the headings that it was given."""
    found: Sections = {}
    name = ""
    for line in map(_capped, text.split("\n")):
        heading = _heading(line)
        if heading:
            name = heading
        elif line.strip():
            found.setdefault(name, []).append(line)
    return found


def _heading(line: str) -> str:
    """Nothing where it is none of ours, or stands in what is quoted."""
    found = _HEADING.match(line)
    if found is None:
        return ""
    given = found[1] or found[2]
    known = next((name for name in (*SECTIONS, GONE) if _plain(name) == _plain(given)), "")
    return known or (given if line.startswith("## ") else "")


def with_facts(said: Sections, before: Iterable[str], gone: Iterable[str]) -> Sections:
    """Older facts come first; ``gone`` are those that are taken back."""
    now = said.get(FACTS, [])
    known = [set(_words(line)) for line in (*now, *gone)]
    kept = [line for line in before if not any(set(_words(line)) <= other for other in known)]
    facts = [*kept, *now][-MOST_FACTS:]
    return {**said, FACTS: facts} if facts else said


def bounded(said: Sections, most: int) -> str:
    """As text of at most so many tokens: the oldest lines of the longest section leave first, and
    of the facts only when they alone are too many."""
    room = (most - TOKENS_AN_ENTRY) * BYTES_A_TOKEN
    line = max(int(room * SHARE_OF_A_LINE), 1)
    sections = {
        name: deque(_capped(one, line) for one in lines) for name, lines in said.items() if lines
    }
    used = {name: _bytes((name, "##", *lines)) for name, lines in sections.items()}
    facts = sections.get(FACTS, deque())
    while len(facts) > 1 and used[FACTS] > room * SHARE_OF_FACTS:
        used[FACTS] -= _bytes((facts.popleft(),))
    while sum(used.values()) > room and (others := used.keys() - {FACTS}):
        longest = max(others, key=lambda name: used[name])
        used[longest] -= _bytes((sections[longest].popleft(),))
        if not sections[longest]:
            del sections[longest], used[longest]
    return _text({name: list(lines) for name, lines in sections.items()})


def _text(sections: Sections) -> str:
    names = sorted(sections, key=lambda name: SECTIONS.index(name) if name in SECTIONS else -1)
    parts = [[f"## {name}", *sections[name]] if name else sections[name] for name in names]
    return "\n\n".join("\n".join(part) for part in parts)


def _bytes(lines: Iterable[str]) -> int:
    """Each with the break behind it."""
    return sum(len(line.encode()) + 1 for line in lines)


def _capped(line: str, most: int = LONGEST_LINE) -> str:
    data = line.rstrip().encode()
    return data.decode() if len(data) <= most else f"{data[:most].decode(errors='ignore')} …"


def _words(line: str) -> list[str]:
    item = _ITEM.match(line)
    return re.findall(r"\w+", (item[1] if item else line).casefold())


def _plain(text: str) -> str:
    return " ".join(_words(text))
