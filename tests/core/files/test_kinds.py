"""What a file is taken for."""

import pytest

from core.domain.messages import Attachment
from core.files.kinds import Kind, kind_of, kind_of_bytes
from tests.core.files.made import pdf, picture


@pytest.mark.parametrize(
    ("word", "name", "mime", "kind"),
    [
        ("photo", "", "", "picture"),
        ("document", "cat.PNG", "", "picture"),
        ("document", "", "image/webp", "picture"),
        ("voice message", "", "audio/ogg; codecs=opus", "speech"),
        ("document", "talk.m4a", "application/octet-stream", "speech"),
        ("document", "main.py", "application/octet-stream", "text"),
        ("document", "data", "application/vnd.api+json", "text"),
        ("document", "notes.txt", "text/plain", "text"),
        ("document", "logo.svg", "image/svg+xml", "text"),
        ("document", "deed", "application/pdf", "pdf"),
        ("document", "deed.pdf", "", "pdf"),
        ("video", "film.mp4", "video/mp4", "other"),
        ("document", "old.doc", "application/msword", "other"),
        ("document", "", "", "untold"),
    ],
)
def test_what_is_told_of_it_decides(word: str, name: str, mime: str, kind: Kind) -> None:
    assert kind_of(Attachment(kind=word, ref="r", name=name, mime=mime)) == kind


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (picture(), "picture"),
        (picture(kind="PNG"), "picture"),
        (picture(kind="WEBP"), "picture"),
        (b"RIFF\0\0\0\0WAVE", "speech"),
        (b"OggS\0", "speech"),
        (pdf("a"), "pdf"),
        (b"just words", "text"),
        (b"PK\x03\x04\x00", "other"),
    ],
)
def test_where_nothing_is_told_its_first_bytes_decide(data: bytes, kind: Kind) -> None:
    assert kind_of_bytes(data) == kind
