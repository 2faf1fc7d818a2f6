"""Renders Markdown as Discord reads it, whose dialect is smaller; never loses a word on the way.

Headings stay headings down to the third level, tables become aligned blocks of code, a rule a line
of dashes; whatever is no markup is escaped. ``Part.markup`` is nothing, or the name and the text of
a file that goes with the message. https://docs.discord.com/developers/reference#message-formatting
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import regex

from bots.render.blocks import rich
from bots.render.rich import Rich, Span
from bots.render.split import Piece, split
from bots.render.text import repair, units
from core.domain.messages import Part

LIMIT = 2000
"""Characters. Whether Discord counts an emoji as one or two of them is not said: as two here."""
SMALLEST = 200
MOST_PARTS = 8
"""An answer of more parts than this goes as a file, with its beginning in the message."""
FILE_NAME = "answer.md"

_BEGINNING = 1200
_WHOLE = "(This is the beginning; the whole answer is in the file.)"
_MORE = " …"
_PREVIEW_SOURCE = 4
_MOST_SPANS = 1_000_000
_LONGEST_ADDRESS = 1000
_DEEPEST_HEADING = "###"
_MARKS = {"bold": "**", "strikethrough": "~~"}
_ADDRESS = regex.compile(r"https?://[^\s<]+")
_SPECIAL = regex.compile(
    r"""(?m)
    [\\*_`]                             # marks of styles and code
    | ~(?=~) | (?<=~)~ | \|(?=\|) | (?<=\|)\|
    | <(?=[@#]|a?:|t:|id:|/\w[\w\ -]*:)   # mentions, emoji, times, commands
    | (?<=\])\((?=\S)                   # what would be a link
    | ^[^\S\n]*\K(?:\#(?=\#{0,2}\s) | -(?=\#\s) | >(?=(?:>>)?\s))
    """,
    regex.VERBOSE,
)
_BULLET = regex.compile(r"(?m)^[^\S\n]*\K[•◦▪](?=\s)")
_UNSAFE_IN_ADDRESS = regex.compile(r"[()<>\\\s]")
_BACKTICKS = regex.compile(r"`+")
_WORD = regex.compile(r"\w")


def render(markdown: str, limit: int = LIMIT) -> tuple[Part, ...]:
    """No parts where there is nothing to see. Raises ValueError for a limit below 200."""
    pieces = list(islice(_pieces(_rich(markdown, limit), limit), MOST_PARTS + 1))
    if len(pieces) <= MOST_PARTS:
        return tuple(_part(piece) for piece in pieces)
    beginning = next(_pieces(_rich(markdown, limit), min(limit, _BEGINNING) - len(_WHOLE) - 2))
    file = {"name": FILE_NAME, "text": repair(markdown)}
    return (_part(beginning, f"\n\n{_WHOLE}", file),)


def render_preview(markdown: str, limit: int = LIMIT) -> Part | None:
    """The beginning of an answer that is still growing, as one part; None when nothing shows."""
    source = markdown[: limit * _PREVIEW_SOURCE]
    text = _rich(source, limit)
    pieces = list(islice(_pieces(text, limit), 2))
    if len(pieces) < 2 and len(source) == len(markdown):
        return _part(pieces[0]) if pieces else None
    shorter = next(_pieces(text, limit - len(_MORE)), None)
    return _part(shorter, _MORE) if shorter else None


def _rich(markdown: str, limit: int) -> Rich:
    if limit < SMALLEST:
        raise ValueError(f"a part needs a limit of {SMALLEST} characters at least")
    return rich(markdown, limit)


def _pieces(text: Rich, limit: int) -> Iterator[Piece]:
    return split(text, limit, _MOST_SPANS, lambda piece: units(_Written(piece).text))


def _part(piece: Piece, more: str = "", file: dict[str, str] | None = None) -> Part:
    return Part(text=_Written(piece).text + more, plain=piece.plain + more, markup=file)


class _Written:
    """A piece as Discord's Markdown."""

    def __init__(self, piece: Piece) -> None:
        self._text = piece.text
        self._spans = sorted(piece.spans, key=lambda span: (span.start, -span.end))
        self._raw = [(span.start, span.end) for span in self._spans if self._is_raw(span)]
        self._raw += [found.span() for found in _ADDRESS.finditer(self._text)]
        self._escaped = self._places(_SPECIAL)
        self._bullets = self._places(_BULLET)
        self.text = self._inside(0, len(self._text), self._spans)

    def _is_raw(self, span: Span) -> bool:
        own = self._text[span.start : span.end]
        return span.kind == "pre" or (span.kind == "code" and bool(_code(own)))

    def _places(self, pattern: "regex.Pattern[str]") -> set[int]:
        found = {match.start() for match in pattern.finditer(self._text)}
        return found.difference(*(range(start, end) for start, end in self._raw))

    def _inside(self, start: int, end: int, spans: Sequence[Span]) -> str:
        chunks: list[str] = []
        number = 0
        while number < len(spans):
            outer = spans[number]
            last = number + 1
            while last < len(spans) and spans[last].start < outer.end:
                last += 1
            chunks += self._plain(start, outer.start), self._span(outer, spans[number + 1 : last])
            start, number = outer.end, last
        return "".join([*chunks, self._plain(start, end)])

    def _plain(self, start: int, end: int) -> str:
        return "".join(map(self._character, range(start, end)))

    def _character(self, at: int) -> str:
        if at in self._bullets:
            return "-"
        return "\\" + self._text[at] if at in self._escaped else self._text[at]

    def _span(self, span: Span, within: Sequence[Span]) -> str:
        own = self._text[span.start : span.end]
        if span.kind == "pre":
            return _fenced(own, span.value)
        if span.kind == "code":
            return _code(own) or self._plain(span.start, span.end)
        inner = self._inside(span.start, span.end, within)
        match span.kind:
            case "text_link":
                return _linked(own, inner, span.value)
            case "blockquote" if self._begins_line(span):
                return _each_line(inner, "> ")
            case "bold" if span.value and self._begins_line(span):
                return self._heading(span.value, inner)
            case "italic":
                mark = "*" if self._touches_word(span) else "_"
                return mark + inner + mark
            case _:
                mark = _MARKS.get(span.kind, "")
                return mark + inner + mark

    def _begins_line(self, span: Span) -> bool:
        return span.start == 0 or self._text[span.start - 1] == "\n"

    def _touches_word(self, span: Span) -> bool:
        around = (
            self._text[max(0, span.start - 1) : span.start],
            self._text[span.end : span.end + 1],
        )
        return any(map(_WORD.match, around))

    def _heading(self, mark: str, inner: str) -> str:
        """A line that is underlined with «=» or «-» is a heading, too."""
        mark = {"=": "#", "-": "##"}.get(mark[:1], mark)
        if len(mark) > len(_DEEPEST_HEADING):
            return f"**{inner}**"
        return _each_line(inner, mark + " ")


def _each_line(text: str, mark: str) -> str:
    return mark + text.replace("\n", "\n" + mark)


def _fenced(code: str, language: str) -> str:
    """Discord ends a block at the first three backticks, whatever opened it."""
    kept = code.replace("```", "`\u200b`\u200b`")
    return f"```{language}\n{kept}\n```"


def _code(text: str) -> str:
    """Nothing where Discord has no way to write it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    if longest > 1:
        return ""
    return f"`` {text} ``" if longest else f"`{text}`"


def _linked(label: str, inner: str, address: str) -> str:
    """Discord makes no link of a label that looks like an address itself."""
    if label == address:
        return address
    safe = _UNSAFE_IN_ADDRESS.sub(lambda found: f"%{ord(found[0]):02X}", address)
    if "://" in label or len(safe) > _LONGEST_ADDRESS:
        return f"{inner} ({address})"
    return f"[{_brackets_escaped(inner)}](<{safe}>)"


def _brackets_escaped(text: str) -> str:
    return text.replace("[", "\\[").replace("]", "\\]")
