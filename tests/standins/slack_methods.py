"""Slack's Web API methods, refusing as Slack does; no HTTP here."""

import time
from collections.abc import Callable
from typing import Any

from tests.standins.faults import RefusedError, too_many
from tests.standins.slack_text import (
    checked_blocks,
    checked_markdown,
    checked_metadata,
    checked_text,
)
from tests.standins.slack_world import (
    APP,
    BOT_ID,
    BOT_USER,
    TEAM,
    Channel,
    Json,
    Message,
    Workspace,
    refused,
)

MOST_PAGE = 999
HISTORY = frozenset({"channels:history", "groups:history", "im:history", "mpim:history"})
READ = frozenset({"channels:read", "groups:read", "im:read", "mpim:read"})
NOTHING = frozenset[str]()
SCOPES: dict[str, frozenset[str]] = {
    "auth.test": NOTHING,
    "apps.connections.open": NOTHING,
    "assistant.threads.setStatus": frozenset({"assistant:write", "chat:write"}),
    "chat.appendStream": frozenset({"chat:write"}),
    "chat.delete": frozenset({"chat:write"}),
    "chat.postEphemeral": frozenset({"chat:write"}),
    "chat.postMessage": frozenset({"chat:write"}),
    "chat.startStream": frozenset({"chat:write"}),
    "chat.stopStream": frozenset({"chat:write"}),
    "chat.update": frozenset({"chat:write"}),
    "conversations.history": HISTORY,
    "conversations.info": READ,
    "conversations.list": READ,
    "conversations.open": frozenset({"im:write"}),
    "conversations.replies": HISTORY,
    "file": frozenset({"files:read"}),
    "files.info": frozenset({"files:read"}),
    "users.info": frozenset({"users:read"}),
}
"""Any one of them allows the method (docs.slack.dev/reference/methods)."""

Tell = Callable[[str, Json], None]


class WebMethods:
    """``statuses`` are (channel, thread, status); ``tell`` spreads an event of the bot's doing."""

    def __init__(self, world: Workspace, tell: Tell) -> None:
        self.world = world
        self.statuses: list[tuple[str, str, str]] = []
        self.ephemerals: list[tuple[str, str, str]] = []
        self.streams_allowed = True
        self.channel_seconds = 0.0
        self._tell = tell
        self._posted: dict[str, float] = {}
        self.table: dict[str, Callable[[Json], Json]] = {
            "auth.test": self._auth_test,
            "assistant.threads.setStatus": self._set_status,
            "chat.appendStream": self._append_stream,
            "chat.delete": self._delete,
            "chat.postEphemeral": self._post_ephemeral,
            "chat.postMessage": self._post_message,
            "chat.startStream": self._start_stream,
            "chat.stopStream": self._stop_stream,
            "chat.update": self._update,
            "conversations.history": self._history,
            "conversations.info": self._info,
            "conversations.list": self._list,
            "conversations.open": self._open,
            "conversations.replies": self._replies,
            "files.info": self._file_info,
            "users.info": self._user_info,
        }

    def _auth_test(self, params: Json) -> Json:
        return {
            "url": "https://standin.slack.com/",
            "team": "Stand-in",
            "user": "stillhere",
            "team_id": TEAM,
            "user_id": BOT_USER,
            "bot_id": BOT_ID,
            "is_enterprise_install": False,
        }

    def _set_status(self, params: Json) -> Json:
        channel = self.world.find(params.get("channel_id"))
        if not params.get("thread_ts"):
            raise refused("invalid_arguments")
        self.statuses.append((channel.id, params["thread_ts"], params.get("status") or ""))
        return {}

    def _post_message(self, params: Json) -> Json:
        channel = self._channel_for_sending(params)
        text, blocks = self._content(params)
        if not (text or blocks):
            raise refused("no_text")
        return self._posted_json(channel, params, text, blocks)

    def _post_ephemeral(self, params: Json) -> Json:
        channel = self._channel_for_sending(params)
        text, _ = self._content(params)
        self.ephemerals.append((channel.id, str(params.get("user")), text))
        return {"message_ts": self.world.timestamp()}

    def _update(self, params: Json) -> Json:
        """Blocks and metadata that are not named stay."""
        channel = self.world.find(params.get("channel"), writing=True)
        message = self._own(channel, params.get("ts"), "cant_update_message")
        if message.streaming:
            raise refused("streaming_state_conflict")
        text = checked_text(params.get("text") or "", update=True)
        blocks = checked_blocks(params.get("blocks"))
        if not text and not blocks:
            raise refused("no_text")
        metadata = checked_metadata(params.get("metadata"))
        message.text = text or message.text
        message.blocks = message.blocks if blocks is None else blocks
        message.metadata = message.metadata if metadata is None else metadata
        message.edits += 1
        self._tell_changed(channel, message)
        return self._result(channel, message)

    def _delete(self, params: Json) -> Json:
        channel = self.world.find(params.get("channel"))
        message = self._own(channel, params.get("ts"), "cant_delete_message")
        if message.streaming:
            raise refused("cant_delete_message")
        del channel.messages[message.ts]
        return {"channel": channel.id, "ts": message.ts}

    def _start_stream(self, params: Json) -> Json:
        if not self.streams_allowed:
            raise refused("method_not_supported_for_channel_type")
        channel = self._channel_for_sending(params)
        if not params.get("thread_ts"):
            raise refused("invalid_arguments")
        for name in ("recipient_user_id", "recipient_team_id"):
            if channel.kind != "im" and not params.get(name):
                raise refused(f"missing_{name}")
        text = checked_markdown(params.get("markdown_text") or "")
        blocks = [{"type": "markdown", "text": text}]
        return self._posted_json(channel, params, "", blocks, streaming=True)

    def _append_stream(self, params: Json) -> Json:
        channel = self.world.find(params.get("channel"))
        message = self._stream(channel, params)
        self._append(message, checked_markdown(params.get("markdown_text") or ""))
        return {"channel": channel.id, "ts": message.ts}

    def _stop_stream(self, params: Json) -> Json:
        channel = self.world.find(params.get("channel"))
        message = self._stream(channel, params)
        self._append(message, checked_markdown(params.get("markdown_text") or ""))
        message.streaming = False
        message.metadata = checked_metadata(params.get("metadata")) or message.metadata
        return self._result(channel, message)

    def _history(self, params: Json) -> Json:
        channel = self.world.find(params.get("channel"))
        top = [message for message in channel.messages.values() if not message.is_reply]
        return self._page(sorted(top, key=lambda message: message.ts, reverse=True), params)

    def _replies(self, params: Json) -> Json:
        channel = self.world.find(params.get("channel"))
        root = params.get("ts")
        if root not in channel.messages:
            raise refused("thread_not_found")
        inside = [m for m in channel.messages.values() if root in (m.ts, m.thread_ts)]
        page = self._page(sorted(inside, key=lambda message: message.ts), params)
        parent = self._seen(channel.messages[root], params)
        if not params.get("cursor") and parent not in page["messages"]:
            page["messages"].insert(0, parent)
        return page

    def _page(self, messages: list[Message], params: Json) -> Json:
        oldest, latest = float(params.get("oldest") or 0), float(params.get("latest") or "inf")
        inclusive = str(params.get("inclusive") or "0") in ("1", "true", "True")
        within = [m for m in messages if _inside(float(m.ts), oldest, latest, inclusive)]
        start, limit = int(params.get("cursor") or 0), int(params.get("limit") or 100)
        if not 0 < limit <= MOST_PAGE:
            raise refused("invalid_limit")
        rest = len(within) > start + limit
        return {
            "messages": [self._seen(message, params) for message in within[start : start + limit]],
            "has_more": rest,
            "response_metadata": {"next_cursor": str(start + limit) if rest else ""},
        }

    def _seen(self, message: Message, params: Json) -> Json:
        seen = self.world.message_json(message)
        if str(params.get("include_all_metadata") or "0") not in ("1", "true", "True"):
            seen.pop("metadata", None)
        return seen

    def _info(self, params: Json) -> Json:
        return {"channel": _channel_json(self.world.find(params.get("channel")))}

    def _list(self, params: Json) -> Json:
        """By default public channels alone."""
        names = {"public_channel": "channel", "private_channel": "group"}
        types = str(params.get("types") or "public_channel").split(",")
        kinds = {names.get(kind, kind) for kind in types}
        found = [c for c in self.world.channels.values() if c.kind in kinds]
        channels = [_channel_json(channel) for channel in found]
        return {"channels": channels, "response_metadata": {"next_cursor": ""}}

    def _open(self, params: Json) -> Json:
        user = str(params.get("users"))
        if user not in self.world.people:
            raise refused("user_not_found")
        return {"channel": {"id": self.world.direct(user).id}}

    def _file_info(self, params: Json) -> Json:
        file = self.world.files.get(str(params.get("file")))
        if file is None:
            raise refused("file_not_found")
        return {"file": self.world.file_json(file)}

    def _user_info(self, params: Json) -> Json:
        person = self.world.people.get(str(params.get("user")))
        if person is None:
            raise refused("user_not_found")
        profile = {"real_name": person.name, "display_name": person.name}
        user = {"id": person.id, "name": person.name.lower(), "team_id": TEAM, "is_bot": False}
        return {"user": user | {"real_name": person.name, "profile": profile}}

    def _content(self, params: Json) -> tuple[str, list[Json] | None]:
        if "markdown_text" in params:
            if params.get("text") or params.get("blocks"):
                raise refused("markdown_text_conflict")
            return "", [{"type": "markdown", "text": checked_markdown(params["markdown_text"])}]
        return checked_text(params.get("text") or ""), checked_blocks(params.get("blocks"))

    def _posted_json(
        self,
        channel: Channel,
        params: Json,
        text: str,
        blocks: list[Json] | None,
        *,
        streaming: bool = False,
    ) -> Json:
        message = self.world.post(
            channel,
            BOT_USER,
            text,
            blocks=blocks,
            thread_ts=params.get("thread_ts") or "",
            metadata=checked_metadata(params.get("metadata")),
            client_msg_id=params.get("client_msg_id") or "",
            streaming=streaming,
        )
        self._tell("message", self.world.message_json(message) | _place(channel))
        return self._result(channel, message)

    def _channel_for_sending(self, params: Json) -> Channel:
        channel = self.world.find(params.get("channel"), writing=True)
        since = time.monotonic() - self._posted.get(channel.id, 0.0)
        if since < self.channel_seconds:
            raise RefusedError(too_many(1))
        self._posted[channel.id] = time.monotonic()
        return channel

    def _own(self, channel: Channel, ts: Any, refusal: str) -> Message:
        message = self.world.message(channel, ts)
        if not message.from_bot:
            raise refused(refusal)
        return message

    def _stream(self, channel: Channel, params: Json) -> Message:
        message = self._own(channel, params.get("ts"), "message_not_owned_by_app")
        if not message.streaming:
            raise refused("message_not_in_streaming_state")
        return message

    def _append(self, message: Message, text: str) -> None:
        block = (message.blocks or [{"type": "markdown", "text": ""}])[0]
        message.blocks = [block | {"text": block["text"] + text}]

    def _result(self, channel: Channel, message: Message) -> Json:
        seen = self.world.message_json(message)
        return {"channel": channel.id, "ts": message.ts, "message": seen}

    def _tell_changed(self, channel: Channel, message: Message) -> None:
        seen = self.world.message_json(message)
        event = {"type": "message", "subtype": "message_changed", "hidden": True, "message": seen}
        self._tell("message", event | {"ts": self.world.timestamp()} | _place(channel))


def _inside(ts: float, oldest: float, latest: float, inclusive: bool) -> bool:
    return oldest <= ts <= latest if inclusive else oldest < ts < latest


def _place(channel: Channel) -> Json:
    return {"channel": channel.id, "channel_type": channel.kind}


def _channel_json(channel: Channel) -> Json:
    kinds = {f"is_{kind}": channel.kind == kind for kind in ("im", "mpim", "group", "channel")}
    names = {"user": channel.user} if channel.kind == "im" else {"name": channel.name}
    return {"id": channel.id, "context_team_id": TEAM, "app_id": APP, **kinds, **names}
