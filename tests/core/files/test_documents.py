"""What is read of documents."""

import pytest

from core.errors import PermanentError
from core.files.documents import MOST_PAGES, NO_TEXT, cut, decoded, text_of_pdf
from tests.core.files.made import pdf


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1"]
)
def test_text_is_read_in_the_encodings_that_people_use(encoding: str) -> None:
    marks = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
    data = marks.get(encoding, b"") + "Grüße, naïf".encode(encoding)

    assert decoded(data) == "Grüße, naïf"


def test_what_is_no_text_is_told() -> None:
    with pytest.raises(PermanentError, match="no text"):
        decoded(b"\x7fELF\x00\x01")


def test_a_pdf_is_read_page_by_page() -> None:
    assert text_of_pdf(pdf("one", "two"), lambda: 0.0) == "one\n\ntwo"


def test_a_pdf_without_text_is_told() -> None:
    with pytest.raises(PermanentError, match=NO_TEXT):
        text_of_pdf(pdf("", ""), lambda: 0.0)


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4\nnothing", pdf("one")[:200]])
def test_a_broken_pdf_is_told(data: bytes) -> None:
    with pytest.raises(PermanentError, match="cannot be opened as a PDF"):
        text_of_pdf(data, lambda: 0.0)


def test_of_many_pages_the_rest_is_named() -> None:
    text = text_of_pdf(pdf(*["page"] * (MOST_PAGES + 3)), lambda: 0.0)

    assert text.endswith(f"[… 3 of {MOST_PAGES + 3} pages not read …]")


def test_a_slow_pdf_is_read_as_far_as_it_goes() -> None:
    times = iter([0.0, 1.0, 2.0, 90.0])

    assert text_of_pdf(pdf("a", "b", "c", "d"), lambda: next(times)) == (
        "a\n\nb\n\n[… 2 of 4 pages not read …]"
    )


def test_a_long_text_keeps_its_head_and_its_tail_and_says_what_is_missing() -> None:
    text = "a" * 500 + "m" * 1000 + "z" * 500

    assert cut(text, 400) == f"{'a' * 300}\n[… 1600 of 2000 characters left out …]\n{'z' * 100}"
    assert cut(text, 2000) == text
