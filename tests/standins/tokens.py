"""Tokens of a request and what of it was seen before, for models' stand-ins; it fetches nothing.

Sources, for what is kept from a prompt:
platform.openai.com/docs/guides/prompt-caching
platform.claude.com/docs/en/build-with-claude/prompt-caching
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import tiktoken

LEAST_KEPT = 1024
"""Tokens; a shorter prompt is never kept."""
LOOKS_BACK = 20
"""Pieces before a mark at which something that was kept is found."""


class Piece(msgspec.Struct, frozen=True):
    """Of a prompt, in order. What ends with a ``marked`` one is kept."""

    text: str
    more: int = 0
    """Tokens that are not in the text: pictures, that is ``unread``."""
    marked: bool = True
    unread: str = ""


class Used(msgspec.Struct, frozen=True):
    """Tokens of a prompt; ``read`` were kept before, ``written`` are kept from now on."""

    total: int
    read: int = 0
    written: int = 0


class Kept:
    """What a vendor keeps of the prompts that it has answered."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def use(self, pieces: Iterable[Piece]) -> Used:
        ends = list(_ends(pieces))
        marks = [place for place, (_, _, marked) in enumerate(ends) if marked]
        seen = [
            place
            for place, (name, tokens, _) in enumerate(ends)
            if name in self._known and tokens >= LEAST_KEPT and _is_near(place, marks)
        ]
        total = ends[-1][1] if ends else 0
        read = ends[seen[-1]][1] if seen else 0
        most = ends[marks[-1]][1] if marks else 0
        self._known.update(ends[place][0] for place in marks)
        return Used(total, read, max(most - read, 0) if most >= LEAST_KEPT else 0)


def count(text: str) -> int:
    return len(_encoding().encode_ordinary(text))


def schema(value: Any) -> str:
    """Of a tool: names count as much as what stands under them."""
    return json.dumps({**value, "cache_control": None}, default=str, ensure_ascii=False)


def words(value: Any) -> str:
    """All that is said somewhere in a message, one a line; a mark is no word."""
    return "\n".join(_words(value))


def _words(value: Any) -> Iterator[str]:
    match value:
        case dict():
            fields: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
            for name, field in fields.items():
                yield from () if name == "cache_control" else _words(field)
        case list():
            items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
            for item in items:
                yield from _words(item)
        case None:
            return
        case _:
            yield str(value)


def _ends(pieces: Iterable[Piece]) -> Iterator[tuple[bytes, int, bool]]:
    """What the prompt is called up to the end of each piece, and its tokens until there."""
    name = hashlib.blake2b(digest_size=16)
    tokens = 0
    for piece in pieces:
        name.update(f"{piece.text}\0{piece.unread}\0".encode(errors="replace"))
        tokens += count(piece.text) + piece.more
        yield name.digest(), tokens, piece.marked


def _is_near(place: int, marks: list[int]) -> bool:
    return any(0 <= mark - place <= LOOKS_BACK for mark in marks)


@cache
def _encoding() -> tiktoken.Encoding:
    """Out of litellm's package, which brings the file that would be fetched."""
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0], "litellm_core_utils", "tokenizers")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    return tiktoken.get_encoding("cl100k_base")
