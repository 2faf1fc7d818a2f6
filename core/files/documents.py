"""The text of documents, as much of it as a conversation can carry; keeps nothing.

pypdf is imported when the first PDF comes: that takes as long as a third of a start.
"""

import codecs
import importlib
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, cast

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


class Page(Protocol):
    def extract_text(self) -> str: ...


class Pdf(Protocol):
    @property
    def pages(self) -> Sequence[Page]: ...


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
        found = _open(data)
        many = len(found.pages)
        pages = list(_pages(found, now() + PDF_SECONDS, now))
    except Exception as error:  # broken files raise anything
        raise PermanentError("It cannot be opened as a PDF, or is locked.") from error
    if not any(page.strip() for page in pages):
        raise PermanentError(NO_TEXT)
    left = many - len(pages)
    note = [f"[… {left} of {many} pages not read …]"] if left else []
    return clean("\n\n".join([*pages, *note]))


def _open(data: bytes) -> Pdf:
    reader = importlib.import_module("pypdf").PdfReader
    return cast("Pdf", reader(io.BytesIO(data)))


def _pages(reader: Pdf, until: float, now: Callable[[], float]) -> Iterator[str]:
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
