"""Text with spans and the places where it may be cut; knows no platform's limits.

``Writer`` keeps the spans legal while it writes: styles end before code and go on after it, a
quotation does the same around a block of code, and nothing lies within its own kind.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from bots.render.text import visible

Kind = Literal["bold", "italic", "strikethrough", "code", "pre", "text_link", "url", "blockquote"]
_QUOTATION: frozenset[Kind] = frozenset({"blockquote"})
_LINKS: frozenset[Kind] = frozenset({"text_link"})


class Span(NamedTuple):
    """``value`` is the address of a link, the language of a ``pre`` or the mark of a heading."""

    start: int
    end: int
    kind: Kind
    value: str = ""


class Break(NamedTuple):
    """A gap between blocks begins at ``at``; ``top`` where the blocks are outermost."""

    at: int
    top: bool


class Table(NamedTuple):
    """Rows from ``start`` to ``end``; those before ``body`` are said again in each part."""

    start: int
    body: int
    end: int


class Rich(NamedTuple):
    """Spans are sorted, outer before inner. ``asides`` are what only the plain twin says, each
    after the character before its position."""

    text: str
    spans: Sequence[Span]
    breaks: Sequence[Break]
    tables: Sequence[Table]
    asides: Sequence[tuple[int, str]]


@dataclass(slots=True)
class _Open:
    kind: Kind
    value: str
    start: int
    counts: bool


@dataclass(slots=True)
class Writer:
    """``indent`` begins each new line; ``depth`` is 0 in the outermost blocks."""

    indent: str = ""
    depth: int = 0
    spans: list[Span] = field(default_factory=list[Span])
    _chunks: list[str] = field(default_factory=list[str])
    _size: int = 0
    _lead: str = ""
    _top: bool = False
    _marker: str = ""
    _keep: bool = False
    _open: list[_Open] = field(default_factory=list[_Open])
    _breaks: list[Break] = field(default_factory=list[Break])
    _tables: list[Table] = field(default_factory=list[Table])
    _asides: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def block(self, gap: int) -> None:
        """What is written next stands ``gap`` newlines lower, or behind a waiting marker."""
        if not self._marker:
            self._lead = "\n" * gap + self.indent
            self._top = self.depth == 0

    def item(self, marker: str, gap: int) -> None:
        """``gap`` is 0 for the first item, which stands where its list does."""
        if gap:
            self.block(gap)
        self._marker += marker

    def end_item(self) -> None:
        if self._marker:
            self.here()

    def keep_with_next(self) -> None:
        """No break in the gap that follows: a heading stays with its text."""
        self._keep = True

    def here(self) -> int:
        """The position of what is written next."""
        if self._lead and not self._keep:
            self._breaks.append(Break(self._size, self._top))
        if self._lead or self._marker:
            self._append(self._lead + self._marker)
            self._lead, self._marker, self._keep = "", "", False
        return self._size

    def write(self, text: str) -> None:
        if text:
            self.here()
            self._append(text.replace("\n", "\n" + self.indent))

    def code(self, text: str) -> None:
        """Code within a link stays a link: no platform has both."""
        if self.inside(_LINKS):
            self.write(text)
            return
        start = self._interrupt(keep=_QUOTATION)
        self.write(text)
        self._resume(Span(start, self._size, "code"), keep=_QUOTATION)

    def pre(self, text: str, language: str = "", body: int = 0) -> None:
        """``body`` is the offset in ``text`` where the rows of a table begin."""
        self._lead = "\n" * self._lead.count("\n")
        self._marker = self._marker.rstrip()
        start = self._interrupt()
        if start and not self._chunks[-1].endswith("\n"):
            self._append("\n")
            start += 1
        self._append(text)
        if body:
            self.table(start, start + body)
        self._resume(Span(start, self._size, "pre", language))

    def table(self, start: int, body: int) -> None:
        """A table from ``start`` to here."""
        self._tables.append(Table(start, body, self._size))

    def open(self, kind: Kind, value: str = "") -> bool:
        """False where it stands within its own kind and says nothing new."""
        counts = not self.inside({kind})
        self._open.append(_Open(kind, value, self.here(), counts))
        return counts

    def close(self) -> None:
        closed = self._open.pop()
        if closed.counts:
            self._add(Span(closed.start, self._size, closed.kind, closed.value))

    def aside(self, text: str) -> None:
        self._asides.append((self._size, text))

    def inside(self, kinds: Iterable[Kind]) -> bool:
        return any(span.kind in kinds for span in self._open)

    def mark(self) -> int:
        """For ``since``."""
        self.here()
        return len(self._chunks)

    def since(self, mark: int) -> str:
        return "".join(self._chunks[mark:])

    def finish(self) -> Rich:
        text = "".join(self._chunks)
        spans = (span for span in self.spans if visible(text[span.start : span.end]))
        order = sorted(spans, key=lambda span: (span.start, -span.end))
        asides = [(_before_spaces(text, at), words) for at, words in self._asides]
        return Rich(text, order, self._breaks, self._tables, asides)

    def _append(self, text: str) -> None:
        if text:
            self._chunks.append(text)
            self._size += len(text)

    def _add(self, span: Span) -> None:
        if span.end > span.start:
            self.spans.append(span)

    def _interrupt(self, keep: frozenset[Kind] = frozenset()) -> int:
        here = self.here()
        for span in self._open:
            if span.counts and span.kind not in keep:
                self._add(Span(span.start, here, span.kind, span.value))
        return here

    def _resume(self, within: Span, keep: frozenset[Kind] = frozenset()) -> None:
        self._add(within)
        for span in self._open:
            if span.kind not in keep:
                span.start = self._size


def _before_spaces(text: str, at: int) -> int:
    while text[at - 1].isspace():
        at -= 1
    return at
