"""Turns what Slack tells of into an inbound message, or into nothing by a stated rule; pure.

Not for us are: edits and deletions (the message was answered as it was first sent), bots, service
messages («Ada joined»), and in channels whatever does not mention us and is no reply in a thread
that we take part in.
"""

import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from bots.platforms.slack import contents
from core.domain import keys
from core.domain.keys import Address
from core.domain.messages import Inbound

SLACKBOT = "USLACKBOT"
# Of a person, or of a kind that is newer than this list: whatever is no service message.
_SERVICE = re.compile(
    r"(app|assistant|bot|channel|document|ekm|group|huddle|im|joiner|message|mpim|pinned|reminder"
    r"|sh_room|slackbot|unpinned)_.*|tombstone|reply_broadcast|file_comment|file_mention"
)
_COMMAND = re.compile(r"[!/](\w+)(?!\S)")
_DIRECT = "D"

Json = Mapping[str, Any]


class Me(msgspec.Struct, frozen=True):
    team: str
    user: str


def place_of(message: Json, channel: str) -> str:
    """What has a place of its own in history: a conversation, or a thread in one."""
    thread = thread_of(message)
    return f"{channel}:{thread}" if thread else channel


def thread_of(message: Json) -> str:
    """Of a reply; a thread's first message stands in its channel."""
    thread = str(message.get("thread_ts") or "")
    return "" if thread == message.get("ts") else thread


def mentions(message: Json, me: Me) -> bool:
    return re.search(_mention(me), str(message.get("text") or "")) is not None


def of_message(
    message: Json,
    channel: str,
    me: Me,
    commands: Collection[str],
    takes_part: Callable[[str], bool],
) -> Inbound | None:
    """``takes_part`` tells of a place whether what is said there is said to us. ``user_name`` is
    left out."""
    if not _is_persons(message, me):
        return None
    is_direct = channel.startswith(_DIRECT)
    thread = thread_of(message)
    if not is_direct and not mentions(message, me):
        ours = thread and (
            message.get("parent_user_id") == me.user or takes_part(f"{channel}:{thread}")
        )
        if not ours:
            return None
    ts = str(message["ts"])
    said = contents.readable(_without_mention(str(message.get("text") or ""), me)).strip()
    command = as_command(said, commands)
    return Inbound(
        address=address(channel, thread if is_direct else thread or ts, me),
        update_id=f"{channel}:{ts}",
        user=str(message["user"]),
        text=command or contents.text_of(message, said),
        sent_at=datetime.fromtimestamp(float(ts), UTC),
        message_id=ts,
        attachments=contents.attachments(message),
        quote=contents.quotation(message),
    )


def of_slash(body: Json, me: Me, commands: Collection[str], now: datetime) -> Inbound:
    """``/stillhere stop``; without a known command behind it, it is said as it is."""
    said = contents.readable(str(body.get("text") or "")).strip()
    known = as_command(f"!{said.removeprefix('/')}", commands)
    return Inbound(
        address=address(str(body["channel_id"]), "", me),
        update_id=f"slash:{body['trigger_id']}",
        user=str(body["user_id"]),
        text=known or said or "/help",
        sent_at=now,
    )


def of_button(body: Json, me: Me, now: datetime) -> Inbound | None:
    """From whoever pressed it, where its message stands. None for a button that is not ours."""
    action: Json = body["actions"][0]
    command = str(action.get("value") or "")
    if not command.startswith("/"):
        return None
    place: Json = body["container"]
    channel, ts = str(place["channel_id"]), str(place["message_ts"])
    thread = str(place.get("thread_ts") or body.get("message", {}).get("thread_ts") or "")
    return Inbound(
        address=address(channel, thread, me),
        update_id=f"button:{channel}:{ts}:{body['user']['id']}:{action['action_ts']}",
        user=str(body["user"]["id"]),
        text=command,
        sent_at=now,
        message_id=ts,
    )


def address(channel: str, thread: str, me: Me) -> Address:
    chat_type: keys.ChatType = "dm" if channel.startswith(_DIRECT) else "channel"
    return Address(
        platform="slack",
        account=me.user,
        workspace=me.team,
        chat=channel,
        chat_type=chat_type,
        thread=thread,
    )


def as_command(said: str, commands: Collection[str]) -> str:
    """``!stop`` and the bare word ``stop``, as Slack's own app keeps what begins with a slash to
    itself; empty where it is none."""
    if said.casefold() == "stop":
        return "/stop"
    found = _COMMAND.match(said)
    known = found is not None and found[1].casefold() in commands
    return f"/{said[1:]}" if known else ""


def _is_persons(message: Json, me: Me) -> bool:
    user = message.get("user")
    foreign = message.get("bot_id") or message.get("hidden") or user in (None, me.user, SLACKBOT)
    return not foreign and _SERVICE.fullmatch(str(message.get("subtype") or "")) is None


def _mention(me: Me) -> str:
    return rf"<@{re.escape(me.user)}(?:\|[^>]*)?>"


def _without_mention(text: str, me: Me) -> str:
    return re.sub(rf"\s*{_mention(me)}[\s,:]*", " ", text, count=1).strip()
