"""Writes a Markdown table as an aligned block, or as lines where that could not be read.

It never leaves out a cell: what does not fit a narrow screen, and what has links (a monospaced
block can't), becomes one line of text a row.
"""

from collections.abc import Sequence

from wcwidth import wcswidth

from bots.render.inline import Inline
from bots.render.markdown import Node
from bots.render.rich import Rich, Writer

# Columns of monospaced text that a desktop window shows in one line.
_WIDEST = 60
_RULE = "-"
_NOTHING = "–"


def write_table(writer: Writer, table: Node, longest_link: int) -> None:
    rows = [row.children for part in table.children for row in part.children]
    cells = [[_cell(cell, longest_link) for cell in row] for row in rows]
    texts = [[cell.text for cell in row] for row in cells]
    widths = _widths(texts)
    linked = any(
        span.kind in {"text_link", "url"} for row in cells for c in row for span in c.spans
    )
    if linked or sum(widths) + 3 * (len(widths) - 1) > _WIDEST:
        _write_lines(writer, rows, longest_link)
        return
    aligns = [str(cell.token.attrGet("style") or "") for cell in rows[0]]
    head, *body = (_line(row, widths, aligns) for row in texts)
    head += "\n" + "-+-".join(_RULE * width for width in widths) + "\n"
    text = (head + "\n".join(body)).rstrip()
    writer.pre(text, body=len(head) if body else 0)


def _cell(cell: Node, longest_link: int) -> Rich:
    writer = Writer()
    _write_cell(writer, cell, longest_link)
    return writer.finish()


def _write_cell(writer: Writer, cell: Node, longest_link: int) -> None:
    for inline in cell.children:
        Inline(writer, longest_link).write(inline.token.children or ())


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    columns = max(len(row) for row in rows)
    return [max(_width(row[n]) for row in rows if n < len(row)) for n in range(columns)]


def _width(text: str) -> int:
    """In monospaced columns; control characters make the library say -1."""
    width = wcswidth(text)
    return width if width >= 0 else len(text)


def _line(row: Sequence[str], widths: Sequence[int], aligns: Sequence[str]) -> str:
    surplus = [""] * (len(row) - len(aligns))
    cells = zip(row, widths, [*aligns, *surplus], strict=False)
    return " | ".join(_padded(text, width, align) for text, width, align in cells).rstrip()


def _padded(text: str, width: int, align: str) -> str:
    space = width - _width(text)
    left = {"text-align:right": space, "text-align:center": space // 2}.get(align, 0)
    return " " * left + text + " " * (space - left)


def _write_lines(writer: Writer, rows: Sequence[Sequence[Node]], longest_link: int) -> None:
    start = writer.here()
    writer.open("bold")
    _write_line(writer, rows[0], longest_link)
    writer.close()
    body = writer.here()
    writer.depth += 1
    for row in rows[1:]:
        writer.item("• ", 1)
        _write_line(writer, row, longest_link)
        writer.end_item()
    writer.depth -= 1
    if len(rows) > 1:
        writer.table(start, body)


def _write_line(writer: Writer, row: Sequence[Node], longest_link: int) -> None:
    filled = [number for number, cell in enumerate(row) if _cell(cell, longest_link).text]
    joint = ""
    for number in range(max(filled, default=0) + 1):
        writer.write(joint if number in filled else joint + _NOTHING)
        _write_cell(writer, row[number], longest_link)
        joint = " | "
