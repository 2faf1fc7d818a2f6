"""Which updates may be taken side by side, and which in their order; it takes none."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from telegram import Update

from bots.platforms.telegram.client import RAW

_MOVES = ("migrate_to_chat_id", "migrate_from_chat_id")


def lanes_of(updates: Sequence[Update]) -> list[list[Update]]:
    """Each chat's in their order, and those of no chat. All in one where a group moves, since what
    is said in its new place is to be known as the old one's by then."""
    if any(_is_move(update.api_kwargs[RAW]) for update in updates):
        return [list(updates)]
    lanes: dict[str, list[Update]] = {}
    for update in updates:
        lanes.setdefault(_chat(update.api_kwargs[RAW]), []).append(update)
    return list(lanes.values())


def _is_move(raw: Mapping[str, Any]) -> bool:
    return any(name in _object(raw, "message") for name in _MOVES)


def _chat(raw: Mapping[str, Any]) -> str:
    """Its id, or nothing. A press has it in the message that it is under."""
    for kind in raw:
        told = _object(raw, kind)
        for place in (told, _object(told, "message")):
            if chat := _object(place, "chat"):
                return str(chat.get("id", ""))
    return ""


def _object(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = raw.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
