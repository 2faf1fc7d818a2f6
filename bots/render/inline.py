"""Writes the inside of one Markdown block; never invents a word, and never loses an address."""

from collections.abc import Sequence

import regex
from markdown_it.token import Token

from bots.render.rich import Kind, Writer
from bots.render.text import units, visible

_STYLES: dict[str, Kind] = {"em": "italic", "strong": "bold", "s": "strikethrough"}
# Telegram drops a link whose host has no dot, or whose scheme is another one.
# https://github.com/tdlib/td/blob/master/td/telegram/LinkManager.cpp (get_checked_link)
_CLICKABLE = regex.compile(r"(?i)https?://[^\s/?#]+\.[^\s/?#.]|tg://|ton://")
_CONTACT = regex.compile(r"(?i)^(?:mailto|tel):")


class Inline:
    """``longest`` is the most units that the address of a link may have; a longer one is text."""

    def __init__(self, writer: Writer, longest: int) -> None:
        self._writer = writer
        self._longest = longest
        self._links: list[tuple[Token, int, bool]] = []

    def write(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            self._token(token)

    def _token(self, token: Token) -> None:
        style = _STYLES.get(token.type.removesuffix("_open").removesuffix("_close"))
        match token.type:
            case "softbreak" | "hardbreak":
                self._writer.write("\n")
            case "code_inline":
                self._writer.code(token.content)
            case "link_open":
                self._open_link(token)
            case "link_close":
                self._close_link()
            case "image":
                self._open_link(token)
                self.write(token.children or ())
                self._close_link()
            case _ if style and token.nesting > 0:
                self._writer.open(style)
            case _ if style:
                self._writer.close()
            case _:
                self._writer.write(token.content)

    def _open_link(self, token: Token) -> None:
        mark = self._writer.mark()
        bare = token.info == "auto"
        linked = bare or self._can_link(_address(token))
        if linked:
            self._writer.open("url" if bare else "text_link", _address(token))
        self._links.append((token, mark, linked))

    def _close_link(self) -> None:
        token, mark, linked = self._links.pop()
        address = _CONTACT.sub("", _address(token))
        label = self._writer.since(mark)
        named = visible(label)
        if not named:
            self._writer.write(address)
        if linked:
            self._writer.close()
        if named and label != address and token.info != "auto":
            (self._writer.aside if linked else self._writer.write)(_bracketed(address))
        self._writer.write(_bracketed(str(token.attrGet("title") or "")))

    def _can_link(self, address: str) -> bool:
        fits = units(address) <= self._longest
        free = not self._writer.inside({"text_link"})
        return fits and free and _CLICKABLE.match(address) is not None


def _address(token: Token) -> str:
    return str(token.attrGet("href") or token.attrGet("src") or "")


def _bracketed(text: str) -> str:
    return f" ({text})" if visible(text) else ""
