"""Values that tests of the domain are made of; it decides nothing."""

from datetime import UTC, datetime
from types import ModuleType

import core.commands
from core.commands.base import Command
from core.domain.events import ReminderSet
from core.domain.keys import Address
from core.domain.messages import Attachment, EffectClass, Inbound, ToolCall
from core.plugins import discover

START = datetime(2026, 5, 5, 14, 30, tzinfo=UTC)
HOME = Address(platform="chat", account="bot", chat="7")
KEY = "agent:main:chat:dm:7"

EFFECTS: dict[str, EffectClass] = {"look": "read_only", "book": "idempotent", "pay": "unsafe"}
"""One tool of each class."""


def effect_of(name: str) -> EffectClass:
    return EFFECTS.get(name, "read_only")


def inbound(
    text: str,
    number: int,
    at: datetime = START,
    address: Address = HOME,
    name: str = "",
    attachments: tuple[Attachment, ...] = (),
    album: str = "",
) -> Inbound:
    return Inbound(
        address=address,
        update_id=f"u{number}",
        user="7",
        text=text,
        sent_at=at,
        user_name=name,
        attachments=attachments,
        album=album,
    )


def calls(*names: str) -> tuple[ToolCall, ...]:
    """One call a tool name, under ids of their own."""
    return tuple(ToolCall(f"c{n}", name, "{}") for n, name in enumerate(names, 1))


def reminder(reminder_id: str, due_at: datetime, text: str = "stretch") -> ReminderSet:
    return ReminderSet(reminder_id=reminder_id, due_at=due_at, text=text, address=HOME)


def commands(package: ModuleType = core.commands) -> dict[str, Command]:
    return discover(package, "COMMAND")
