"""Values to JSON and back, old versions upgraded; never guesses at what it cannot read."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast, get_args

import msgspec

from core.domain.events import Event, Recorded, SessionOpened
from core.domain.messages import OutboxMessage
from core.domain.state import SCHEMA_VERSION, SessionState
from core.errors import BrokenDataError, IllegalEventError

_T = TypeVar("_T")
Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""From (type, version) to the next version: pure, on the JSON object, tag included."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_REPLACEMENT = "\ufffd"
_VERSIONS: Mapping[str, int] = {
    cast(str, kind.__struct_config__.tag): kind.version for kind in get_args(Event)
}

_UNREADABLE = (
    msgspec.MsgspecError,
    ValueError,
    KeyError,
    TypeError,
    OverflowError,
    RecursionError,
)
"""All that damaged bytes, or columns of another type, can raise."""

_encoder = msgspec.json.Encoder()
_events: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_states = msgspec.json.Decoder(SessionState)
_messages = msgspec.json.Decoder(OutboxMessage)


def micros(moment: datetime) -> int:
    """Microseconds since 1970, UTC. Raises TypeError without a time zone."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


def clean(text: str) -> str:
    """Without NUL and lone surrogates, which PostgreSQL, or both databases, refuse."""
    if text.isascii() and "\0" not in text:
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\0", _REPLACEMENT)


class EventRow(msgspec.Struct, frozen=True):
    """``session_id`` is set where a session begins. ``at`` in microseconds."""

    seq: int
    at: int
    type: str
    version: int
    session_id: str | None
    data: str


class Codec:
    def __init__(self, upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS) -> None:
        self._upcasters = upcasters

    def event_row(self, recorded: Recorded) -> EventRow:
        """Raises IllegalEventError for an event that could not be read back."""
        event = recorded.event
        return EventRow(
            recorded.seq,
            micros(recorded.at),
            type(event).__name__,
            event.version,
            clean(event.session_id) if isinstance(event, SessionOpened) else None,
            _encode(event, _events),
        )

    def recorded(self, key: str, row: EventRow) -> Recorded:
        """Raises BrokenDataError, with the place in the log."""
        try:
            return Recorded(row.seq, moment(row.at), self._event(row))
        except _UNREADABLE as error:
            why = clean(f"{key}@{row.seq}: {row.type} v{row.version}: {error}")
            raise BrokenDataError(why) from error

    @property
    def versions(self) -> Mapping[str, int]:
        """Of each kind of event, as it is written today."""
        return _VERSIONS

    def knows(self, kind: str, version: int) -> bool:
        """Whether there is a way from this version of an event to one of today."""
        return version == _VERSIONS.get(kind) or (kind, version) in self._upcasters

    def _event(self, row: EventRow) -> Event:
        if row.version == _VERSIONS.get(row.type):
            return _events.decode(row.data)
        kind, version = row.type, row.version
        data: dict[str, Any] = msgspec.json.decode(row.data)
        while (kind, version) in self._upcasters:
            data = self._upcasters[kind, version](data)
            kind, version = data["type"], version + 1
        if version != _VERSIONS.get(kind):
            raise ValueError("this version of the program cannot read it")
        return msgspec.convert(data, Event)


def snapshot_text(state: SessionState) -> str:
    """Raises IllegalEventError."""
    return _encode(state, _states)


def snapshot(key: str, seq: int, version: int, data: str) -> SessionState | None:
    """None for one that is unreadable, of another version, or not of this place: it is a cache."""
    if version != SCHEMA_VERSION:
        return None
    try:
        state = _states.decode(data)
    except _UNREADABLE:
        return None
    return state if (state.key, state.seq) == (key, seq) else None


def message_text(message: OutboxMessage) -> str:
    """Raises IllegalEventError."""
    return _encode(message, _messages)


def message(data: str) -> OutboxMessage:
    return _messages.decode(data)


def _encode(value: object, decoder: msgspec.json.Decoder[_T]) -> str:
    """What is written is read back at once: nothing unreadable ever enters the log."""
    try:
        data = _encoder.encode(value)
        if b"\\u0000" not in data:
            decoder.decode(data)
            return data.decode()
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError):
        pass
    try:
        data = _encoder.encode(_storable(msgspec.to_builtins(value)))
        decoder.decode(data)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise IllegalEventError(f"{type(value).__name__} cannot be stored: {error}") from error
    return data.decode()


def _storable(value: object) -> object:
    match value:
        case str():
            return clean(value)
        case float():
            return value if math.isfinite(value) else 0.0
        case dict():
            items = cast(dict[object, object], value).items()
            return {_storable(name): _storable(item) for name, item in items}
        case list() | tuple():
            return [_storable(item) for item in cast(list[object], value)]
        case _:
            return value
