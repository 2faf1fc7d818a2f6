"""Renders Markdown as text with entities for the Bot API; never uses a parse mode.

``Part.markup`` is the list of entities, with offsets and lengths in UTF-16 units.
https://core.telegram.org/bots/api#messageentity
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from bots.render.blocks import rich
from bots.render.rich import Rich, Span
from bots.render.split import Piece, split
from bots.render.text import offsets
from core.domain.messages import Part

LIMIT = 4096
SMALLEST = 32

# Telegram drops what is beyond 100; two are left for the ends of a bare address that is cut.
_MOST_ENTITIES = 98
_ORDER = ("blockquote", "text_link", "url", "bold", "italic", "strikethrough", "code", "pre")
_MORE = " …"
# A preview needs no more source than this many times what it can show.
_PREVIEW_SOURCE = 4


def render(markdown: str, limit: int = LIMIT) -> tuple[Part, ...]:
    """No parts where there is nothing to see; then the caller has to say so.

    Each part is at most ``limit`` units, and so is its plain twin. How many there are has no
    bound. Raises ValueError for a limit below 32.
    """
    return tuple(_part(piece) for piece in split(_rich(markdown, limit), limit, _MOST_ENTITIES))


def render_preview(markdown: str, limit: int = LIMIT) -> Part | None:
    """The beginning of an answer that is still growing, as one part; None when nothing shows."""
    source = markdown[: limit * _PREVIEW_SOURCE]
    text = _rich(source, limit)
    pieces = list(islice(split(text, limit, _MOST_ENTITIES), 2))
    if len(pieces) < 2 and len(source) == len(markdown):
        return _part(pieces[0]) if pieces else None
    shorter = next(split(text, limit - len(_MORE), _MOST_ENTITIES), None)
    return _part(shorter, _MORE) if shorter else None


def _rich(markdown: str, limit: int) -> Rich:
    if limit < SMALLEST:
        raise ValueError(f"a part needs a limit of {SMALLEST} units at least")
    return rich(markdown, limit)


def _part(piece: Piece, more: str = "") -> Part:
    units = offsets(piece.text)
    spans = sorted(piece.spans, key=lambda span: (span.start, -span.end, _rank(span)))
    entities = [_entity(span, units) for span in spans]
    return Part(text=piece.text + more, plain=piece.plain + more, markup=entities)


def _entity(span: Span, units: Sequence[int]) -> dict[str, Any]:
    start = units[span.start]
    entity: dict[str, Any] = {"type": span.kind, "offset": start, "length": units[span.end] - start}
    if span.kind == "url":
        entity["type"] = "text_link"
    if span.value and span.kind != "bold":
        entity["language" if span.kind == "pre" else "url"] = span.value
    return entity


def _rank(span: Span) -> int:
    return _ORDER.index(span.kind)
