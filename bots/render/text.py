"""Measures and mends text for any platform; never changes a character that could be sent as it is.

Units are UTF-16 code units, in which Telegram counts.
"""

from collections.abc import Sequence
from itertools import accumulate

import regex

_UNSENDABLE = regex.compile(r"[\ud800-\udfff\x00]")
_VISIBLE = regex.compile(r"[^\s\p{Z}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]")
_CONTROL = regex.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f]")
_NEWLINE = regex.compile(r"\r\n?")
_ASTRAL = 0x10000


def repair(text: str) -> str:
    """Lone surrogates and NUL become U+FFFD: neither can be encoded and stored everywhere."""
    return _UNSENDABLE.sub("\ufffd", text)


def tame(text: str) -> str:
    """Newlines are ``\\n``, other control characters spaces, as Telegram would make them."""
    return _CONTROL.sub(" ", _NEWLINE.sub("\n", text))


def visible(text: str) -> bool:
    """False where a platform would call the message empty."""
    return _VISIBLE.search(text) is not None


def units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "replace")) // 2


def offsets(text: str) -> Sequence[int]:
    """The units before each character, and the units of all as the last item."""
    if text.isascii():
        return range(len(text) + 1)
    return list(accumulate((1 + (ord(char) >= _ASTRAL) for char in text), initial=0))
