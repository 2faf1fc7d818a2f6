"""The text of documents, as much of it as a conversation can carry; keeps nothing."""

import codecs
import io
from collections.abc import Callable, Iterator

from pypdf import PdfReader

from core.domain.values import clean
from core.errors import PermanentError

MOST_PAGES = 300
PDF_SECONDS = 20.0
"""Looked at between pages."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
NO_TEXT = "There is no text in it; it may be a scan."


def decoded(data: bytes) -> str:
    """UTF-8, UTF-16 with its mark, or else Latin-1. Raises PermanentError for what is no text."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return clean(data.decode(name, "replace"))
    if b"\0" in data:
        raise PermanentError("It is no text.")
    try:
        return clean(data.decode())
    except UnicodeDecodeError:
        return clean(data.decode("latin-1"))


def text_of_pdf(data: bytes, now: Callable[[], float]) -> str:
    """``now`` is in seconds. It blocks. Raises PermanentError with a sentence for the user."""
    try:
        reader = PdfReader(io.BytesIO(data))
        many = len(reader.pages)
        pages = list(_pages(reader, now() + PDF_SECONDS, now))
    except Exception as error:  # broken files raise anything
        raise PermanentError("It cannot be opened as a PDF, or is locked.") from error
    if not any(page.strip() for page in pages):
        raise PermanentError(NO_TEXT)
    left = many - len(pages)
    note = [f"[… {left} of {many} pages not read …]"] if left else []
    return clean("\n\n".join([*pages, *note]))


def _pages(reader: PdfReader, until: float, now: Callable[[], float]) -> Iterator[str]:
    for page in reader.pages[:MOST_PAGES]:
        if now() > until:
            return
        yield page.extract_text()


def cut(text: str, most: int) -> str:
    """Head and tail of a longer one, with a note between them."""
    text = text.strip()
    if len(text) <= most:
        return text
    head, tail = most * 3 // 4, most // 4
    left = len(text) - head - tail
    note = f"[… {left} of {len(text)} characters left out …]"
    return f"{text[:head]}\n{note}\n{text[len(text) - tail :]}"
