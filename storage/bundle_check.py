"""Whether a bundle can be believed, asked in a fixed order; never changes it."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from core.domain.state import SCHEMA_VERSION, SessionState
from core.errors import BrokenDataError
from storage import bundle
from storage.bundle import EVENT_FILE, FORMAT, META, SNAPSHOT, File, Line, Meta, Replay
from storage.codec import Codec

_BLOCK = 1 << 20


def check(folder: Path, codec: Codec | None = None) -> Meta:
    """Asks for the files, the versions, the snapshot's fields, an unbroken row of events, their
    replay, and whether it leads to the snapshot. Raises BrokenDataError with the first fault.
    It blocks."""
    codec = codec or Codec()
    meta = _meta(folder)
    _versions(meta, codec)
    snapshot = _snapshot(folder, meta)
    _unbroken(folder, meta)
    _replay(folder, meta, snapshot, codec)
    if meta.fault:
        raise BrokenDataError(f"the log was broken when it was exported: {meta.fault}")
    return meta


def _meta(folder: Path) -> Meta:
    found = _json(folder / META)
    form = found.get("format")
    if form != FORMAT:
        raise BrokenDataError(f"{META}: format {form}, this version reads format {FORMAT}")
    try:
        meta = msgspec.convert(found, Meta)
    except msgspec.MsgspecError as error:
        raise BrokenDataError(f"{META}: {error}") from error
    names = [file.name for file in meta.files]
    logs = _logs(meta)
    if not logs or sorted(names) != sorted({SNAPSHOT, *(file.name for file in logs)}):
        raise BrokenDataError(f"{META}: it names other files than a bundle has")
    for file in meta.files:
        _same(folder, file)
    if sum(file.lines for file in logs) != meta.events:
        raise BrokenDataError(f"{META}: its counts do not add up")
    return meta


def _logs(meta: Meta) -> list[File]:
    return sorted(
        (file for file in meta.files if EVENT_FILE.fullmatch(file.name)), key=lambda one: one.name
    )


def _same(folder: Path, file: File) -> None:
    size, digest = 0, hashlib.sha256()
    try:
        with (folder / file.name).open("rb") as opened:
            while block := opened.read(_BLOCK):
                size += len(block)
                digest.update(block)
    except OSError as error:
        raise BrokenDataError(f"{file.name}: {error.strerror}") from error
    if (size, digest.hexdigest()) != (file.size, file.sha256):
        raise BrokenDataError(f"{file.name}: it is not the file that was exported")


def _versions(meta: Meta, codec: Codec) -> None:
    if meta.schema_version > SCHEMA_VERSION:
        raise BrokenDataError(
            f"{META}: a newer version wrote it (schema {meta.schema_version}, ours is"
            f" {SCHEMA_VERSION})"
        )
    for kind in meta.kinds:
        known = isinstance(kind.type, str) and isinstance(kind.version, int)
        if not known or not codec.knows(kind.type, kind.version):
            raise BrokenDataError(
                f"{META}: this version cannot read {kind.type} v{kind.version} ({kind.count} of"
                " them)"
            )


def _snapshot(folder: Path, meta: Meta) -> SessionState | None:
    """None where the log was broken already, and the snapshot is one that nobody vouches for; or
    where it is older than today's: the log says more."""
    found = _json(folder / SNAPSHOT)
    if (meta.fault and "stored" in found) or meta.schema_version < SCHEMA_VERSION:
        return None
    state = bundle.state(found)
    if state.key != meta.key:
        raise BrokenDataError(f"{SNAPSHOT}: it is of {state.key}, not of {meta.key}")
    if not meta.base_seq <= state.seq <= meta.last_seq:
        raise BrokenDataError(f"{SNAPSHOT}: it is at {state.seq}, outside the log")
    return state


def _unbroken(folder: Path, meta: Meta) -> None:
    wanted = meta.base_seq
    for line in _events(folder, meta):
        wanted += 1
        if line.seq != wanted:
            raise BrokenDataError(f"event {wanted} is missing: {line.seq} is in its place")
    if wanted != meta.last_seq:
        raise BrokenDataError(f"event {wanted + 1} is missing: the log ends there")


def _replay(folder: Path, meta: Meta, snapshot: SessionState | None, codec: Codec) -> None:
    start = snapshot if snapshot is not None and meta.base_seq else SessionState(key=meta.key)
    replay = Replay(start, codec)
    for line in _events(folder, meta):
        if line.seq <= start.seq:
            continue
        replay.add(bundle.row(line))
        if replay.fault:
            raise BrokenDataError(replay.fault)
        if snapshot is not None and line.seq == snapshot.seq and replay.state != snapshot:
            raise BrokenDataError(f"{SNAPSHOT}: the log leads to another state at {line.seq}")
    if fault := replay.ended(meta.last_seq):
        raise BrokenDataError(fault)


def _events(folder: Path, meta: Meta) -> Iterator[Line]:
    for file in _logs(meta):
        count = 0
        try:
            with _opened(folder / file.name) as opened:
                for count, text in enumerate(opened, 1):
                    yield _line(file.name, count, text)
        except (OSError, EOFError, zlib.error) as error:
            raise BrokenDataError(f"{file.name}: {error}") from error
        if count != file.lines:
            raise BrokenDataError(f"{file.name}: {count} lines, not {file.lines}")


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _line(name: str, number: int, text: bytes) -> Line:
    try:
        return bundle.read_line(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BrokenDataError(f"{name}, line {number}: {error}") from error


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise BrokenDataError(f"{path.name}: {error.strerror}") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BrokenDataError(f"{path.name}: {error}") from error
    if not isinstance(found, dict):
        raise BrokenDataError(f"{path.name}: it is not an object")
    return cast(dict[str, Any], found)
