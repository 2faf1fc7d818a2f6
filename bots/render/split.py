"""Cuts rich text into windows that fit a message; never inside a grapheme that would fit.

A window is at most ``limit`` units, as text and as plain twin, and has at most ``most`` spans. A
cut is made between blocks if that fills the message well enough, else between paragraphs, lines,
sentences, words, graphemes. Spans go on behind a cut, and the head of a table is said again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, islice, takewhile
from typing import NamedTuple

import regex

from bots.render.rich import Rich, Span
from bots.render.text import offsets, units, visible

# How full a message must be, at least, to be cut at such a place.
_FULL_TOP, _FULL_INNER, _FULL_LINE = 0.3, 0.4, 0.5

_LINE = regex.compile(r"\n")
_SENTENCE_END = regex.compile(r"""[.!?…]+["'”’»)\]]*(?=\s)|[。！？]+[」』”’）]*""")  # noqa: RUF001
_SPACES = regex.compile(r"\s+")
_GRAPHEME = regex.compile(r"\X")
# A space with a mark on it is a grapheme that shows; controls take no mark.
_LEADING = regex.compile(r"(?:[\t\n\x85\u2028\u2029]|\s(?![\p{M}\p{Grapheme_Extend}\u200d]))*+")
_BLANK_LINES = regex.compile(r"(?:[^\S\n]*\n)*+")


class Piece(NamedTuple):
    """What fits one message; the positions of ``spans`` are those in its ``text``."""

    text: str
    plain: str
    spans: Sequence[Span]


def _nothing(_: Piece) -> int:
    return 0


def split(
    rich: Rich, limit: int, most: int, size: Callable[[Piece], int] = _nothing
) -> Iterator[Piece]:
    """Lazily, in order. ``limit`` in units is at least 32; ``size`` says how long a piece becomes
    where its spans are written into the text."""
    splitter = _Splitter(rich, limit, most, size)
    return (splitter.piece(slices) for slices in splitter.windows())


class _Splitter:
    """A slice is a start and an end in the whole text; the slices of a window are joined by
    newlines: perhaps the head of a table, and then what is new."""

    def __init__(self, rich: Rich, limit: int, most: int, size: Callable[[Piece], int]) -> None:
        self._rich = rich
        self._size = size
        self._text = rich.text
        self._limit = limit
        self._most = most
        self._units = offsets(rich.text)
        self._plain = _with_asides(self._units, rich.asides)
        self._aside_ats = [at for at, _ in rich.asides]
        self._starts = [span.start for span in rich.spans]
        self._ends = list(accumulate((span.end for span in rich.spans), max))
        self._pres = [span for span in rich.spans if span.kind == "pre"]
        self._pre_starts = [span.start for span in self._pres]

    def windows(self) -> Iterator[list[tuple[int, int]]]:
        end = len(self._text)
        start = self._skip(0)
        while start < end:
            slices, cut = self._window(start, end)
            if visible(self._text[start:cut]):
                yield slices
            start = self._skip(cut)

    def _window(self, start: int, end: int) -> tuple[list[tuple[int, int]], int]:
        """And where it was cut: the sooner, the longer the piece becomes in writing."""
        limit = self._limit
        while True:
            head = self._head(start, limit)
            reach = self._reach(start, head, limit)
            cut = end if reach >= end else self._cut(start, max(reach, start + 1))
            slices = [*head, self._trimmed(start, cut)]
            size = self._size(self.piece(slices))
            if size <= self._limit or cut == start + 1 or limit == 1:
                return slices, cut
            limit = max(1, min(limit - 1, limit * self._limit // size))

    def piece(self, slices: Sequence[tuple[int, int]]) -> Piece:
        text = "\n".join(self._text[start:end] for start, end in slices)
        plain = "\n".join(self._plain_text(start, end) for start, end in slices)
        spans: list[Span] = []
        base = 0
        for start, end in slices:
            for span in self._clipped(start, end):
                moved = span._replace(start=span.start + base, end=span.end + base)
                _add_or_prolong(spans, moved)
            base += end - start + 1
        return Piece(text, plain, spans)

    def _plain_text(self, start: int, end: int) -> str:
        chunks: list[str] = []
        first = bisect_right(self._aside_ats, start)
        last = bisect_right(self._aside_ats, end)
        for at, words in self._rich.asides[first:last]:
            chunks += self._text[start:at], words
            start = at
        return "".join([*chunks, self._text[start:end]])

    def _clipped(self, start: int, end: int) -> Iterator[Span]:
        """A bare address needs no span where it is whole: platforms see that it is one."""
        for span in self._within(start, end):
            first, last = max(start, span.start), min(end, span.end)
            text = self._text[first:last]
            last = first + len(text.rstrip())
            if span.kind != "pre":
                first = min(last, first + len(text) - len(text.lstrip()))
            whole = span.kind == "url" and start <= span.start and span.end <= end
            if not whole and visible(text):
                yield Span(first - start, last - start, span.kind, span.value)

    def _within(self, start: int, end: int) -> Iterator[Span]:
        first = bisect_right(self._ends, start)
        last = bisect_left(self._starts, end)
        return (span for span in self._rich.spans[first:last] if span.end > start)

    def _pre(self, at: int) -> Span | None:
        """The block of code or the table that ``at`` is inside of, or that begins there."""
        index = bisect_right(self._pre_starts, at) - 1
        return self._pres[index] if index >= 0 and self._pres[index].end > at else None

    def _skip(self, at: int) -> int:
        """To the next text. The indentation of a line of code is text."""
        if self._pre(at) is None:
            following = bisect_left(self._pre_starts, at)
            stop = [*self._pre_starts[following : following + 1], len(self._text)][0]
            at = _end(_LEADING, self._text, at, stop)
        return at if self._pre(at) is None else _end(_BLANK_LINES, self._text, at, len(self._text))

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        return start, start + len(self._text[start:end].rstrip())

    def _head(self, start: int, limit: int) -> list[tuple[int, int]]:
        """The head to repeat, where that leaves most of the message to rows."""
        for table in self._rich.tables:
            if table.body <= start < table.end:
                head = self._trimmed(table.start, table.body)
                fits = self._cost(head) * 2 < limit
                return [head] if fits and self._count(head) * 4 < self._most else []
        return []

    def _cost(self, part: tuple[int, int]) -> int:
        start, end = part
        counts = (self._units, self._plain)
        return max(count[end] - count[start] for count in counts) + 1

    def _count(self, part: tuple[int, int]) -> int:
        return sum(span.kind != "url" for span in self._within(*part))

    def _reach(self, start: int, head: Sequence[tuple[int, int]], limit: int) -> int:
        """As far as a message from ``start`` can go, whatever is there."""
        spare = limit - sum(map(self._cost, head))
        reach = min(
            bisect_right(count, count[start] + spare) - 1 for count in (self._units, self._plain)
        )
        most = self._most - sum(map(self._count, head))
        counted = (span for span in self._within(start, reach) if span.kind != "url")
        return min([reach, *(span.start for span in islice(counted, most, most + 1))])

    def _cut(self, start: int, reach: int) -> int:
        whole = self._boundaries(start, reach)
        for places, fullness in self._places(start, reach):
            least = start + max(1, int((reach - start) * fullness))
            fitting = [at for at in places if least <= at <= reach and at in whole]
            if fitting:
                return max(fitting)
        return max(whole, default=reach)

    def _places(self, start: int, reach: int) -> Iterator[tuple[Iterable[int], float]]:
        """Kinds of places from the best to the worst, with how full the message must be."""
        breaks = self._rich.breaks[bisect_left(self._rich.breaks, (start,)) :]
        near = list(takewhile(lambda gap: gap.at <= reach, breaks))
        yield (gap.at for gap in near if gap.top), _FULL_TOP
        yield (gap.at for gap in near), _FULL_INNER
        ends = (found.start() for found in _LINE.finditer(self._text, start, reach + 1))
        in_code = self._pre(reach) is not None or self._pre(reach - 1) is not None
        heads = [table for table in self._rich.tables if start < table.body and table.start < reach]
        lines = (at for at in ends if not any(head.start <= at <= head.body for head in heads))
        yield lines, 0 if in_code else _FULL_LINE
        if not in_code:
            sentences = _SENTENCE_END.finditer(self._text, start, reach + 1)
            yield (found.end() for found in sentences), _FULL_LINE
        yield (found.start() for found in _SPACES.finditer(self._text, start, reach + 1)), 0

    def _boundaries(self, start: int, reach: int) -> Collection[int]:
        if self._text.isascii():
            return range(start + 1, reach + 1)
        ends = (found.end() for found in _GRAPHEME.finditer(self._text, start))
        return set(takewhile(lambda end: end <= reach, ends))


def _end(pattern: "regex.Pattern[str]", text: str, start: int, stop: int) -> int:
    found = pattern.match(text, start, stop)
    return found.end() if found else start


def _with_asides(counts: Sequence[int], asides: Sequence[tuple[int, str]]) -> Sequence[int]:
    if not asides:
        return counts
    extra = [0] * len(counts)
    for at, words in asides:
        extra[at] += units(words)
    return [count + more for count, more in zip(counts, accumulate(extra), strict=True)]


def _add_or_prolong(spans: list[Span], span: Span) -> None:
    """The head and the rows of a table are one block."""
    last = spans[-1] if spans else None
    if last and last.kind == span.kind == "pre" and last.end + 1 == span.start:
        spans[-1] = last._replace(end=span.end)
    else:
        spans.append(span)
