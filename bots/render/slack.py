"""Renders Markdown for Slack's markdown block, which reads it as it is; never rewrites a word.

Slack's own tokens, which would call a person, a channel or everyone, are broken by a character of
no width. ``Part.markup`` is set for a preview alone: ``{"stream": text}`` is what a stream shows.
https://docs.slack.dev/reference/block-kit/blocks/markdown-block
"""

from itertools import islice

import regex

from bots.render import source
from bots.render.text import repair, tame
from core.domain.messages import Part

LIMIT = 12_000
"""Characters of all markdown blocks of a message, in the larger of the counts in use (UTF-16)."""
SMALLEST = 64
STREAM = "stream"

_MORE = "\n…"
_BREAK = "<\u200b"
# A comment, a doctype and CDATA mean nothing to Slack, and people copy code.
_TOKEN = regex.compile(r"<(?=[@#]|!(?!--|\[CDATA\[|(?i:doctype)\b))")
# What may yet become a token, or not: a stream waits for the rest of it.
_UNDECIDED = regex.compile(r"<(?:!\S{0,8})?\Z")


def render(markdown: str, limit: int = LIMIT) -> tuple[Part, ...]:
    """No parts where there is nothing to see; then the caller has to say so.

    Each part is at most ``limit`` units. Raises ValueError for a limit below 64.
    """
    _check(limit)
    return tuple(
        Part(text=text, plain=text) for text in source.cut(_neutral(tame(repair(markdown))), limit)
    )


def render_preview(markdown: str, limit: int = LIMIT) -> Part | None:
    """The beginning of an answer that is still growing, as one part; None when nothing shows."""
    _check(limit)
    raw = tame(repair(markdown[: limit + 1]))
    texts = list(islice(source.cut(_neutral(raw), limit - len(_MORE)), 2))
    if not texts:
        return None
    all_shown = len(texts) == 1 and len(markdown) <= limit
    text = texts[0] if all_shown else texts[0] + _MORE
    return Part(text=text, plain=text, markup={STREAM: _neutral(_UNDECIDED.sub("", raw))})


def _neutral(text: str) -> str:
    return _TOKEN.sub(_BREAK, text)


def _check(limit: int) -> None:
    if limit < SMALLEST:
        raise ValueError(f"a part needs a limit of {SMALLEST} units at least")
