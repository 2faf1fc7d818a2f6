"""Cuts Markdown as it was written, for platforms that read it themselves; rewrites no word of it.

A cut is made where ``split`` finds the best place. A block of code that is cut is closed there and
opened again in the next piece; out of a list or a quotation it stands for itself then. The head of
a table is said again.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import regex

from bots.render.markdown import Node, parse
from bots.render.rich import Break, Rich, Span, Table
from bots.render.split import Piece, split
from bots.render.text import visible

_UNBOUNDED = 10**9
# Of the limit, at most, that may go for what opens and closes a block of code again.
_SHARE = 8
_OPENER = regex.compile(r"(?P<before>[^`~]*?)(?P<mark>`{3,}|~{3,})")
_CONTAINER = regex.compile(r"[^>]")
_CONTENTS = frozenset({"hr", "definition", "image"})


class _Fence(NamedTuple):
    """``before`` is what each of its lines begins with, in a list or quotation; ``opener`` the
    whole first line behind it. ``closed`` where the source closes it."""

    before: str
    opener: str
    mark: str
    closed: bool


def cut(source: str, limit: int) -> Iterator[str]:
    """Pieces of at most ``limit`` units, 64 at least, in order; none where nothing shows.
    ``source`` is tame, and repaired."""
    nodes = parse(source)
    if not any(map(_says_something, nodes)):
        return iter(())
    plan = _Plan(source, limit // _SHARE)
    plan.walk(nodes, top=True)
    spare = max((len(f.before) + 2 * len(f.mark) + 2 for f in plan.fences.values()), default=0)
    pieces = list(split(plan.rich(), limit - spare, _UNBOUNDED))
    return filter(visible, _whole(pieces, plan.fences))


class _Plan:
    """Where the source may be cut, by the tree of its blocks."""

    def __init__(self, source: str, longest: int) -> None:
        self.fences: dict[str, _Fence] = {}
        self._source = source
        self._lines = source.split("\n")
        self._starts = list(accumulate((len(line) + 1 for line in self._lines), initial=0))
        self._longest = longest
        self._spans: list[Span] = []
        self._breaks: list[Break] = []
        self._tables: list[Table] = []

    def rich(self) -> Rich:
        return Rich(self._source, self._spans, sorted(self._breaks), self._tables, ())

    def walk(self, nodes: Sequence[Node], *, top: bool) -> None:
        before = ""
        for node in nodes:
            if node.token.map is None or node.type == "inline":
                continue
            first, last = node.token.map
            if before and before != "heading":
                self._breaks.append(Break(self._end(self._starts[first]), top))
            before = node.type
            match node.type:
                case "fence":
                    self._fence(first, last)
                case "code_block":
                    self._spans.append(self._span(self._starts[first], last, ""))
                case "table":
                    self._table(first, last)
                case _:
                    self.walk(node.children, top=False)

    def _fence(self, first: int, last: int) -> None:
        line = self._lines[first]
        found = _OPENER.match(line)
        if found is None or found.end() - found.start() > self._longest:
            return
        start = self._starts[first] + found.start("mark")
        before, mark = found["before"], found["mark"]
        end = self._lines[last - 1].rstrip()
        closed = last - first > 1 and end.endswith(mark) and not end.strip(f" \t>{mark[0]}")
        name = str(len(self.fences))
        opener = line[found.start("mark") :].rstrip()
        self.fences[name] = _Fence(_CONTAINER.sub(" ", before), opener, mark, closed)
        span = self._span(start, last, name)
        self._spans.append(span)
        body = self._starts[first + 1]
        if body < span.end:
            self._tables.append(Table(start, body, span.end))

    def _table(self, first: int, last: int) -> None:
        """The second line is its rule."""
        end = self._end(self._starts[last])
        if last - first > 2:
            self._tables.append(Table(self._starts[first], self._starts[first + 2], end))

    def _span(self, start: int, last: int, value: str) -> Span:
        return Span(start, max(start, self._end(self._starts[last])), "pre", value)

    def _end(self, at: int) -> int:
        """Of what is written before it."""
        at = min(at, len(self._source))
        while at and self._source[at - 1].isspace():
            at -= 1
        return at


def _whole(pieces: Sequence[Piece], fences: dict[str, _Fence]) -> Iterator[str]:
    """With each block of code opened and closed in every piece that has some of it."""
    names = [[span.value for span in piece.spans if span.value] for piece in pieces]
    for piece, before, after in zip(pieces, [[], *names], [*names[1:], []], strict=False):
        text, end = piece.text, ""
        spans = [span for span in piece.spans if span.value]
        if spans and spans[-1].end == len(text):
            last = spans[-1]
            fence, inside = fences[last.value], last.value not in before
            text, end = _ended(
                text, last.start, fence, indented=inside, goes_on=last.value in after
            )
        if spans and spans[0].value in before:
            stop = min(spans[0].end, len(text))
            text = _opened(text[:stop], fences[spans[0].value]) + text[stop:]
        yield (text + end).strip("\n") if text else ""


def _ended(
    text: str, start: int, fence: _Fence, *, indented: bool, goes_on: bool
) -> tuple[str, str]:
    """A piece that ends within code or right behind it, and what is to be added to it."""
    if goes_on and text[start:] == fence.opener:
        return text[:start].rstrip(), ""
    closer = f"\n{fence.before if indented else ''}{fence.mark}"
    return text, closer if goes_on or not fence.closed else ""


def _opened(code: str, fence: _Fence) -> str:
    """Code that goes on, as a block of its own; nothing where only its end is left."""
    lines = code.split("\n")
    if lines[0] == fence.opener:
        del lines[0]
    lines = [_outside(line, fence.before) for line in lines]
    if all(not line.strip(f" \t{fence.mark[0]}") for line in lines):
        return ""
    opener = fence.opener if len(fence.opener) < len(code) else fence.mark
    return "\n".join([opener, *lines])


def _outside(line: str, before: str) -> str:
    if line.startswith(before):
        return line[len(before) :]
    indent = len(line) - len(line.lstrip(" "))
    return line[min(indent, len(before)) :]


def _says_something(node: Node) -> bool:
    token = node.token
    shown = node.type in _CONTENTS or visible(token.content + token.info)
    images = (child.type == "image" for child in token.children or ())
    return shown or any(images) or any(map(_says_something, node.children))
