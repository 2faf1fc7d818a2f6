"""Parses Markdown once into a small tree of blocks; never drops a word of the source.

CommonMark with tables, strikethrough and bare links; HTML is text. What the parser would drop
silently is kept: surplus table cells, link definitions that nothing uses, and whatever is nested
too deep.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import regex
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit, getLine
from markdown_it.token import Token

from bots.render.text import repair, tame

# The parser gives up at level 20; a list and its item take two levels.
_DEEPEST = 16
_GAP_IN_URL = regex.compile(r"\s")


class Node(NamedTuple):
    """A block. ``token`` opens it, or is all of it."""

    token: Token
    children: list["Node"]

    @property
    def type(self) -> str:
        return self.token.type.removesuffix("_open")


class _Parser(MarkdownIt):
    """Leaves addresses as they were written: no percent or punycode on either side."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802
        return _GAP_IN_URL.sub("%20", url)

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802
        return link


def parse(markdown: str) -> list[Node]:
    parser = _Parser("gfm-like", {"html": False, "inline_definitions": True, "store_labels": True})
    rules = parser.block.ruler
    rules.at("table", _table, {"alt": ["paragraph", "reference"]})
    rules.before("table", "deep", _deep, {"alt": []})
    tokens = parser.parse(tame(repair(markdown)))
    return _tree(_without_used_definitions(tokens))


def _tree(tokens: Iterable[Token]) -> list[Node]:
    top: list[Node] = []
    open_lists = [top]
    for token in tokens:
        if token.nesting < 0:
            open_lists.pop()
            continue
        node = Node(token, [])
        open_lists[-1].append(node)
        if token.nesting > 0:
            open_lists.append(node.children)
    return top


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    first = len(state.tokens)
    found = table(state, start, end, silent)
    state.tokens[first:] = _with_all_cells(state, state.tokens[first:])
    return found


def _with_all_cells(state: StateBlock, tokens: Sequence[Token]) -> Iterator[Token]:
    columns = sum(token.type == "th_open" for token in tokens)
    line = 0
    for token in tokens:
        if token.type == "tr_open" and token.map:
            line = token.map[0]
        if token.type == "tr_close":
            for cell in _cells(getLine(state, line))[columns:]:
                yield Token("td_open", "td", 1)
                yield Token("inline", "", 0, content=cell.strip(), children=[])
                yield Token("td_close", "td", -1)
        yield token


def _cells(line: str) -> list[str]:
    cells = escapedSplit(line.strip())
    first = 1 if cells and not cells[0] else 0
    last = len(cells) - 1 if len(cells) > first and not cells[-1] else len(cells)
    return cells[first:last]


def _deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    if silent or state.level < _DEEPEST:
        return False
    line = start + 1
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        line += 1
    state.line = line
    state.push("paragraph_open", "p", 1)
    inline = state.push("inline", "", 0)
    inline.content = state.getLines(start, line, state.blkIndent, keepLastLF=False).strip()
    inline.children = []
    state.push("paragraph_close", "p", -1)
    return True


def _without_used_definitions(tokens: Sequence[Token]) -> Iterator[Token]:
    """A definition that gave a link its address has been said; any other is shown."""
    used = {label for token in tokens for label in _labels(token.children or ())}
    for token in tokens:
        if token.type == "definition" and token.meta["id"] in used:
            used.remove(token.meta["id"])
        else:
            yield token


def _labels(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if "label" in token.meta:
            yield token.meta["label"]
        yield from _labels(token.children or ())
