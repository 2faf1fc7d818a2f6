"""Writes the tree of a Markdown text as rich text for a chat; never lets two blocks touch."""

from collections.abc import Sequence

import regex
from markdown_it.token import Token

from bots.render.inline import Inline
from bots.render.markdown import Node, parse
from bots.render.rich import Rich, Writer
from bots.render.tables import write_table
from bots.render.text import visible

_BULLETS = ("• ", "◦ ", "▪ ")
_RULER = "—" * 8
_TASK = regex.compile(r"\[([ xX])\]\s+")
_LANGUAGE = regex.compile(r"[A-Za-z0-9][A-Za-z0-9_+#.-]{0,31}")
_BLANK_LINES = regex.compile(r"^(?:[^\S\n]*\n)+")
# What an address in the plain twin needs besides itself: a space, brackets, a character.
_BESIDES_ADDRESS = 8


def rich(markdown: str, limit: int) -> Rich:
    """``limit`` in units is that of a part: an address that would fill half of it is text."""
    blocks = _Blocks(Writer(), limit // 2 - _BESIDES_ADDRESS)
    blocks.write(parse(markdown), gap=2)
    return blocks.writer.finish()


class _Blocks:
    def __init__(self, writer: Writer, longest_link: int) -> None:
        self.writer = writer
        self._longest_link = longest_link
        self._bullets = 0

    def write(self, nodes: Sequence[Node], gap: int) -> None:
        before = ""
        for node in nodes:
            joined = node.type == before == "definition" or (
                self.writer.depth > 0 and before == "paragraph" and node.type.endswith("_list")
            )
            if _says_something(node):
                if before:
                    self.writer.block(1 if joined else gap)
                self._block(node)
                before = node.type

    def _block(self, node: Node) -> None:
        match node.type:
            case "heading":
                self._heading(node)
            case "blockquote":
                self._quotation(node)
            case "bullet_list" | "ordered_list":
                self._list(node)
            case "fence" | "code_block":
                self._code(node)
            case "table":
                write_table(self.writer, node, self._longest_link)
            case "hr":
                self.writer.write(_RULER)
            case "definition":
                self._definition(node)
            case "inline":
                Inline(self.writer, self._longest_link).write(node.token.children or ())
            case _:
                self._inside(node)

    def _heading(self, node: Node) -> None:
        """The span's value is the mark of an outermost heading, which not every platform shows."""
        self.writer.open("bold", "" if self.writer.depth else node.token.markup)
        self._inside(node)
        self.writer.close()
        self.writer.keep_with_next()

    def _inside(self, node: Node) -> None:
        for child in node.children:
            self._block(child)

    def _quotation(self, node: Node) -> None:
        outer = self.writer.indent
        if not self.writer.open("blockquote"):
            self.writer.write("> ")
            self.writer.indent += "> "
        self.writer.depth += 1
        self.write(node.children, gap=2)
        self.writer.depth -= 1
        self.writer.close()
        self.writer.indent = outer

    def _list(self, node: Node) -> None:
        gap = 2 if any(map(_loose, node.children)) else 1
        bullets = node.type == "bullet_list"
        bullet = _BULLETS[min(self._bullets, len(_BULLETS) - 1)]
        self._bullets += bullets
        self.writer.depth += 1
        for index, item in enumerate(node.children):
            marker = bullet if bullets else item.token.info + item.token.markup + " "
            self._item(item, marker, gap if index else 0)
        self.writer.depth -= 1
        self._bullets -= bullets

    def _item(self, item: Node, marker: str, gap: int) -> None:
        outer = self.writer.indent
        self.writer.item(_with_box(item, marker), gap)
        self.writer.indent = outer + " " * len(marker)
        self.write(item.children, gap=2 if _loose(item) else 1)
        self.writer.end_item()
        self.writer.indent = outer

    def _code(self, node: Node) -> None:
        info = node.token.info.strip()
        code = _BLANK_LINES.sub("", node.token.content).rstrip()
        language, _, rest = info.partition(" ")
        if not visible(code) or not _LANGUAGE.fullmatch(language):
            language, rest = "", info
        if visible(rest):
            self.writer.write(rest)
            self.writer.block(1)
        if visible(code):
            self.writer.pre(code, language)

    def _definition(self, node: Node) -> None:
        meta = node.token.meta
        title = f' "{meta["title"]}"' if meta["title"] else ""
        self.writer.write(f"[{meta['label']}]: {meta['url']}{title}")


def _says_something(node: Node) -> bool:
    if node.type in {"hr", "definition", "list_item", "image"}:
        return True
    token = node.token
    return visible(token.content + token.info) or any(map(_says_something, node.children))


def _loose(item: Node) -> bool:
    return any(child.type == "paragraph" and not child.token.hidden for child in item.children)


def _with_box(item: Node, marker: str) -> str:
    """Takes the box of a task out of the item's text."""
    texts = [
        token for node in item.children[:1] for child in node.children for token in _text(child)
    ]
    box = _TASK.match(texts[0].content) if texts else None
    if box is None:
        return marker
    texts[0].content = texts[0].content[box.end() :]
    number = marker if item.token.info else ""
    return number + ("☐ " if box[1] == " " else "☑ ")


def _text(inline: Node) -> list[Token]:
    return [token for token in (inline.token.children or ())[:1] if token.type == "text"]
