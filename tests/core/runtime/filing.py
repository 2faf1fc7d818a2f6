"""A house in which people send files, and what the model is shown of them."""

from collections import deque

from core.domain.messages import Attachment, UserMessage
from tests.core.files.made import pdf, picture
from tests.core.runtime.house import Ground

PHOTO = Attachment(kind="photo", ref="cat")
VOICE = Attachment(kind="voice message", ref="words", mime="audio/ogg")
NOTES = Attachment(kind="document", ref="notes", name="notes.txt", mime="text/plain")
FILES = {
    "cat": picture(),
    "broken": b"\xff\xd8\xff",
    "words": b"OggS",
    "notes": b"milk, eggs",
    "deed": pdf("sold"),
    "film": b"\0\0\0\x20ftyp",
}


class Ear:
    """``core.ports.Transcriber``."""

    def __init__(self, *heard: str | Exception) -> None:
        self.heard = deque(heard)

    async def transcribe(self, data: bytes, attachment: Attachment) -> str:
        said = self.heard.popleft()
        if isinstance(said, Exception):
            raise said
        return said


def ground(*lines: object) -> Ground:
    made = Ground(*lines)
    made.chat.files = dict(FILES)
    return made


def asked(ground: Ground, number: int = -1) -> UserMessage:
    message = ground.script.requests[number].messages[-1]
    assert isinstance(message, UserMessage)
    return message
