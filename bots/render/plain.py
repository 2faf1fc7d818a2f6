"""Gives Markdown to a screen that shows it as it is; never changes what can be encoded."""

from bots.render.text import repair
from core.domain.messages import Part


def render(markdown: str) -> tuple[Part, ...]:
    """One part, whatever its length; an empty text is an empty part."""
    text = repair(markdown)
    return (Part(text=text, plain=text),)
