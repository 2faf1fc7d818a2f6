"""Small values to fill a store with; knows no store."""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from core.domain.events import Event, ModelReplied, Recorded, SessionOpened
from core.domain.keys import Address
from core.domain.messages import OutboxKind, OutboxMessage, Part
from core.domain.state import SessionState
from core.ports import Commit, InboxId, Lease, SessionStore

KEY = "agent:main:telegram:dm:7"
OTHER = "agent:main:telegram:dm:8"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def at(seconds: float = 0) -> datetime:
    return datetime(2026, 5, 5, 14, 30, 22, 123456, UTC) + timedelta(seconds=seconds)


def lease(owner: str = "here", until: float = 30) -> Lease:
    return Lease(owner, at(until))


def said(text: str = "hello") -> ModelReplied:
    return ModelReplied(turn=1, step=1, text=text)


def opened(session_id: str = "20260505_143022_a1b2c3d4") -> SessionOpened:
    return SessionOpened(session_id=session_id, reason="first")


def log(first: int, *events: Event) -> tuple[Recorded, ...]:
    return tuple(Recorded(seq, at(seq), event) for seq, event in enumerate(events, first))


def commit(key: str, seq: int, *events: Event, **rest: Any) -> Commit:
    """One that brings the log from ``seq`` to where ``events`` end."""
    made = Commit(key=key, expected_seq=seq, at=at(), log=log(seq + 1, *events))
    return replace(made, **rest)


async def put_aside(
    store: SessionStore, key: str, when: datetime, first: Commit | None = None
) -> str:
    """The log that is there."""
    head = await store.raw_head(key)
    assert head
    return await store.set_aside(key, head.number, when, first)


async def loaded(store: SessionStore, key: str) -> tuple[SessionState | None, tuple[Recorded, ...]]:
    """The snapshot and the log after it."""
    stored = await store.load(key)
    return stored.snapshot, stored.log


def update(number: int = 1, platform: str = "telegram") -> InboxId:
    return InboxId(platform, "bot", str(number))


def letter(
    name: str, chat: str = "7", *, kind: OutboxKind = "answer", edits: str = "", key: str = KEY
) -> OutboxMessage:
    return OutboxMessage(
        id=name,
        key=key,
        address=Address(platform="telegram", account="bot", chat=chat),
        kind=kind,
        part=Part(text=f"*{name}*", plain=name, markup=[{"type": "bold"}]),
        edits=edits,
    )


def state(key: str, seq: int) -> SessionState:
    return SessionState(key=key, seq=seq)
