"""A bundle's format: a session in files that people and other programs can read; never touches a
disk or a database."""

import base64
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from core.domain.fold import apply
from core.domain.messages import Usage
from core.domain.recovery import faults
from core.domain.state import Session, SessionState, Turn
from core.errors import BrokenDataError, IllegalEventError
from core.ports import RawRow
from storage.codec import Codec, EventRow, micros, moment

FORMAT = 1
META = "meta.json"
SNAPSHOT = "snapshot.json"
LINES_A_FILE = 10_000
EVENT_FILE = re.compile(r"events(-\d{4,})?\.jsonl(\.gz)?")


class Kind(msgspec.Struct, frozen=True):
    """How many events of one type and version there are."""

    type: Any
    version: Any
    count: int


class File(msgspec.Struct, frozen=True):
    """``sha256`` and ``size`` are of the bytes on disk, compressed or not."""

    name: str
    lines: int
    size: int
    sha256: str


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """``base_seq`` is the number before the first event. ``kept_as`` is the key that a log which
    was set aside has in the database. ``fault`` is what the export found first, empty for a sound
    log. ``stream`` is the key's own row as the database had it."""

    format: int = FORMAT
    service: str
    schema_version: int
    key: str
    kept_as: str = ""
    session_id: str
    base_seq: int = 0
    last_seq: int
    events: int
    kinds: tuple[Kind, ...]
    exported_at: datetime
    why: str
    fault: str = ""
    files: tuple[File, ...]
    stream: dict[str, Any] = {}


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event. ``data`` is its JSON to the byte; where that is no JSON, or none of one line, it
    is the string ``text``; where it is no UTF-8 text, ``base64``. ``at`` stands for a time that
    cannot be one, ``session_id`` where a session begins."""

    seq: Any
    type: Any
    version: Any
    timestamp: datetime | None = None
    at: Any = None
    session_id: Any = None
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: Any = None
    base64: str | None = None


_lines = msgspec.json.Decoder(Line)


def line(row: RawRow) -> bytes:
    """Without the line's end. Nothing of the row is lost."""
    at = _time(row["at"])
    made = Line(
        seq=carried(row["seq"]),
        type=carried(row["type"]),
        version=carried(row["version"]),
        timestamp=at,
        at=carried(row["at"]) if at is None else None,
        session_id=carried(row["session_id"]),
        **_data(row["data"]),
    )
    return msgspec.json.encode(made)


def row(found: Line) -> EventRow:
    """What the codec reads; broken values stay what they are. Raises BrokenDataError."""
    data = "" if found.data is msgspec.UNSET else bytes(found.data).decode()
    if isinstance(found.text, str):
        data = found.text
    if found.timestamp is None:
        raise BrokenDataError(f"event {found.seq}: its time cannot be read")
    at = micros(found.timestamp)
    return EventRow(found.seq, at, found.type, found.version, found.session_id, data)


def read_line(text: bytes) -> Line:
    """Raises msgspec.MsgspecError, ValueError, RecursionError."""
    return _lines.decode(text)


def pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value)) + b"\n"


def raw_snapshot(row: RawRow | None) -> dict[str, Any]:
    """A snapshot that nobody vouches for, as it was stored."""
    if row is None:
        return {"stored": None}
    seq, version = carried(row["seq"]), carried(row["version"])
    return {"stored": {"seq": seq, "version": version, **_data(row["data"])}}


def carried(value: object) -> object:
    """A stored value as JSON carries it without loss."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, str) and not _is_text(value):
        return {"base64": _base64(value)}
    return value


def _data(value: object) -> dict[str, Any]:
    if isinstance(value, str) and _is_text(value):
        return {"data": msgspec.Raw(value.encode())} if _is_json_line(value) else {"text": value}
    if isinstance(value, str | bytes):
        return {"base64": _base64(value)}
    return {"text": value}


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_json_line(value: str) -> bool:
    if "\n" in value or "\r" in value:
        return False
    try:
        msgspec.json.decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


def _base64(value: str | bytes) -> str:
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    return base64.b64encode(raw).decode()


def _time(value: object) -> datetime | None:
    try:
        return moment(value) if isinstance(value, int) else None
    except OverflowError:
        return None


_OF_CONTEXT = ("entries", "last_sources")
_OF_CONFIGURATION = ("model", "parameters", "custom")
_OF_METADATA = ("key", "seq", "schema_version", "previous", "closed_reason")


def parts(state: SessionState) -> dict[str, Any]:
    """The six parts of a snapshot, whole: values that are at their default stand there, too."""
    own, session, turn = _fields(state), _fields(state.session), _fields(state.turn)
    del own["session"], own["turn"]
    usage = _fields(state.session.usage) if state.session else {}
    usage |= {"total": state.session.usage.total} if state.session else {}
    session.pop("usage", None)
    calls = turn.pop("calls", [])
    metadata = {name: own.pop(name) for name in _OF_METADATA}
    context = {name: session.pop(name) for name in _OF_CONTEXT if session}
    configuration = {name: session.pop(name) for name in _OF_CONFIGURATION if session}
    return {
        "metadata": {**metadata, "session": session or None},
        "context": context,
        "tools": calls,
        "position": {**own, "turn": turn or None},
        "usage": usage,
        "configuration": configuration,
    }


def state(found: Mapping[str, Any]) -> SessionState:
    """Back from the six parts. Raises BrokenDataError for a field that is missing or wrong."""
    try:
        own: dict[str, Any] = {**found["metadata"], **found["position"]}
        if own["session"] is not None:
            own["session"] |= found["context"] | found["configuration"]
            own["session"]["usage"] = found["usage"]
        if own["turn"] is not None:
            own["turn"]["calls"] = found["tools"]
        _require(own, SessionState, "it")
        _require(own["session"], Session, "its session")
        _require(own["turn"], Turn, "its turn")
        _require(own["session"] and own["session"]["usage"], Usage, "its usage")
        return msgspec.convert(own, SessionState)
    except KeyError as error:
        raise BrokenDataError(f"{SNAPSHOT}: {error.args[0]} is missing") from error
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise BrokenDataError(f"{SNAPSHOT}: {error}") from error


def _require(found: Mapping[str, Any] | None, kind: type[msgspec.Struct], name: str) -> None:
    """An older version's snapshot may lack what came later; ours lacks nothing."""
    missing = set(kind.__struct_fields__) - set(found) if found is not None else ()
    if missing:
        raise BrokenDataError(f"{SNAPSHOT}: {name} has no {', '.join(sorted(missing))}")


def _fields(value: msgspec.Struct | None) -> dict[str, Any]:
    if value is None:
        return {}
    return {
        name: msgspec.to_builtins(getattr(value, name), str_keys=True)
        for name in value.__struct_fields__
    }


class Replay:
    """Folds rows as they come and keeps the first fault; holds one state, however long the log."""

    def __init__(self, start: SessionState, codec: Codec) -> None:
        self.state = start
        self.fault = ""
        self._codec = codec

    def add(self, row: EventRow) -> None:
        if self.fault:
            return
        try:
            self.state = apply(self.state, self._codec.recorded(self.state.key, row))
        except (BrokenDataError, IllegalEventError) as error:
            self.fault = str(error)

    def ended(self, seq: int) -> str:
        """The first fault of a log that should end there, or nothing."""
        if not self.fault and self.state.seq < seq:
            self.fault = f"{self.state.key}@{self.state.seq + 1}: missing from the log"
        if not self.fault:
            self.fault = "; ".join(faults(self.state))
        return self.fault
