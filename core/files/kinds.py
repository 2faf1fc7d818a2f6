"""What an attachment may be read as, by what is told of it or by its first bytes; opens nothing."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

from core.domain.messages import Attachment

Kind = Literal["picture", "speech", "pdf", "text", "other", "untold"]
"""``untold``: only its bytes can say."""

_BY_WORD: Mapping[str, Kind] = {
    "photo": "picture",
    "picture": "picture",
    "image": "picture",
    "voice message": "speech",
    "voice": "speech",
    "audio": "speech",
}
_TEXTS = frozenset(
    {"json", "x-ndjson", "xml", "javascript", "x-javascript", "yaml", "x-yaml", "toml", "sql"}
    | {"x-sh", "x-shellscript", "x-python", "x-httpd-php", "graphql", "x-tex", "x-subrip"}
)
"""Of the types «application/…»."""
_ENDINGS: Mapping[Kind, frozenset[str]] = {
    "text": frozenset(
        {"txt", "md", "markdown", "rst", "csv", "tsv", "json", "jsonl", "ndjson", "xml", "html"}
        | {"htm", "css", "scss", "js", "mjs", "jsx", "ts", "tsx", "vue", "py", "pyi", "ipynb"}
        | {"rb", "go", "rs", "java", "kt", "swift", "c", "h", "cc", "cpp", "hpp", "cs", "php"}
        | {"pl", "lua", "r", "jl", "scala", "ex", "exs", "erl", "hs", "ml", "clj", "dart", "sql"}
        | {"sh", "bash", "zsh", "fish", "ps1", "bat", "yaml", "yml", "toml", "ini", "cfg", "conf"}
        | {"env", "log", "tex", "bib", "srt", "vtt", "diff", "patch", "proto", "graphql", "tf"}
    ),
    "picture": frozenset({"jpg", "jpeg", "png", "gif", "webp", "bmp", "tif", "tiff", "avif"}),
    "speech": frozenset({"ogg", "oga", "opus", "mp3", "m4a", "wav", "flac", "mpga", "amr"}),
    "pdf": frozenset({"pdf"}),
}
_UNTOLD = ("", "application/octet-stream", "binary/octet-stream")
_HEADS: tuple[tuple[bytes, Kind], ...] = (
    (b"%PDF-", "pdf"),
    (b"\xff\xd8\xff", "picture"),
    (b"\x89PNG\r\n\x1a\n", "picture"),
    (b"GIF8", "picture"),
    (b"BM", "picture"),
    (b"OggS", "speech"),
    (b"ID3", "speech"),
    (b"fLaC", "speech"),
)
_LOOKED_AT = 4096


def kind_of(attachment: Attachment) -> Kind:
    """A type that is told goes before the name's ending, and that before the platform's word."""
    mime = attachment.mime.partition(";")[0].strip().lower()
    if mime not in _UNTOLD:
        return _of_mime(mime) or _of_name(attachment.name) or "other"
    return _of_name(attachment.name) or _BY_WORD.get(attachment.kind, "untold")


def kind_of_bytes(data: bytes) -> Kind:
    head = data[:_LOOKED_AT]
    for start, kind in _HEADS:
        if head.startswith(start):
            return kind
    if head[:4] == b"RIFF":
        return {b"WEBP": "picture", b"WAVE": "speech"}.get(head[8:12], "other")  # pyright: ignore[reportReturnType]
    return "other" if b"\0" in head else "text"


def _of_mime(mime: str) -> Kind | None:
    family, _, kind = mime.partition("/")
    if family == "image":
        return "text" if "svg" in kind else "picture"
    if family == "audio":
        return "speech"
    if mime in ("application/pdf", "application/x-pdf"):
        return "pdf"
    if family == "text" or kind.endswith(("+json", "+xml")):
        return "text"
    return "text" if family == "application" and kind in _TEXTS else None


def _of_name(name: str) -> Kind | None:
    ending = PurePosixPath(name).suffix.removeprefix(".").lower()
    return next((kind for kind, endings in _ENDINGS.items() if ending in endings), None)
