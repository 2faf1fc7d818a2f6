"""What Anthropic refuses in pictures, as its own sentences; it never changes one.

Source: platform.claude.com/docs/en/build-with-claude/vision
"""

import base64
import io
from collections.abc import Iterator
from typing import Any

from PIL import Image

Json = dict[str, Any]
KINDS = {"image/jpeg": "JPEG", "image/png": "PNG", "image/gif": "GIF", "image/webp": "WEBP"}
LARGEST = 5 * 2**20
"""Bytes of base64 text."""
LONGEST_EDGE = 8000
LONGEST_EDGE_OF_MANY = 2000
"""Pixels, in a request with more than ``MANY`` pictures."""
MANY = 20
PICTURE_TOKENS = 1600


def about_pictures(blocks: list[tuple[str, Json]], most: int) -> list[str]:
    """``blocks`` are all of a request, each with its place."""
    pictures = [(where, block) for where, block in blocks if block.get("type") == "image"]
    edge = LONGEST_EDGE_OF_MANY if len(pictures) > MANY else LONGEST_EDGE
    found = [
        sentence
        for where, block in pictures
        for sentence in _about_source(f"{where}.image.source", block.get("source"), edge)
    ]
    if len(pictures) > most:
        found.append(f"Too much media: 0 document pages + {len(pictures)} images > {most}")
    return found


def _about_source(where: str, source: Any, edge: int) -> Iterator[str]:
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            yield from _about_data(f"{where}.base64", kind, data, edge)
        case {"type": "url", "url": str()} | {"type": "file", "file_id": str()}:
            return
        case _:
            yield f"{where}: Field required"


def _about_data(where: str, kind: str, data: str, edge: int) -> Iterator[str]:
    if kind not in KINDS:
        yield (
            f"{where}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or "
            "'image/webp'"
        )
        return
    if len(data) > LARGEST:
        yield f"{where}: image exceeds 5 MB maximum: {len(data)} bytes > {LARGEST} bytes"
        return
    try:
        with Image.open(io.BytesIO(base64.b64decode(data, validate=True))) as picture:
            picture.verify()
            found, size = picture.format, picture.size
    except (OSError, SyntaxError, ValueError):
        yield f"{where}.data: Could not process image"
        return
    if found != KINDS[kind]:
        yield f"{where}.data: Image does not match the provided media type {kind}"
    if max(size) > edge:
        what = " for many-image requests" if edge == LONGEST_EDGE_OF_MANY else ""
        yield (
            f"{where}.data: At least one of the image dimensions exceed max allowed size{what}: "
            f"{edge} pixels"
        )
