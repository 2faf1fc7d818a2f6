"""A person who talks to the bot in tests and looks at what it shows; it sees no event or call."""

import html
from collections.abc import Callable
from typing import Any, TypeVar

from tests.standins.changes import Changes
from tests.standins.faults import Refuse
from tests.standins.slack_events import Envelope, Events
from tests.standins.slack_methods import WebMethods
from tests.standins.slack_world import (
    APP,
    BOT_ID,
    BOT_USER,
    TEAM,
    Channel,
    File,
    Json,
    Message,
    Person,
    Workspace,
    slack_error,
)

MENTION = f"<@{BOT_USER}>"
T = TypeVar("T")


class User:
    """Each act tells the bot by an event, as far as Slack would let it know. Where ``channel`` is
    not named it is the private conversation with the bot."""

    def __init__(
        self,
        person: Person,
        world: Workspace,
        events: Events,
        methods: WebMethods,
        changes: Changes,
    ) -> None:
        self._person = person
        self._world = world
        self._events = events
        self._methods = methods
        self._changes = changes
        self._acts = 0

    @property
    def id(self) -> str:
        return self._person.id

    @property
    def dm(self) -> str:
        return self._act(lambda: self._world.direct(self.id).id)

    @property
    def chat(self) -> list[Message]:
        """All messages of the private conversation that are visible now, in order."""
        return self.sees()

    def sees(self, channel: str = "", thread: str = "") -> list[Message]:
        """In order; of a thread also its root."""
        with self._changes.lock:
            place = self._channel(channel)
            messages = sorted(place.messages.values(), key=lambda message: message.ts)
        return [m for m in messages if not thread or thread in (m.ts, m.thread_ts)]

    def bot_texts(self, channel: str = "", thread: str = "") -> list[str]:
        return [message.shown for message in self.sees(channel, thread) if message.from_bot]

    def status(self) -> list[str]:
        """All that the bot has shown as its state in the private conversation."""
        with self._changes.lock:
            shown = self._methods.statuses
            return [text for channel, _, text in shown if channel == self._channel("").id]

    def says(self, text: str, *, thread: str = "", **fields: Any) -> Message:
        return self.says_in("", text, thread=thread, **fields)

    def says_in(
        self, channel: str, text: str, *, thread: str = "", mention: bool = False, **fields: Any
    ) -> Message:
        """As Slack's app would send it: escaped, with the mention as its token. In a channel the
        bot is told of a mention twice, by ``message`` and by ``app_mention``."""
        said = html.escape(text, quote=False)
        said = f"{MENTION} {said}" if mention else said
        return self._act(lambda: self._post(self._channel(channel), said, thread, **fields))

    def sends_raw(self, text: str, *, channel: str = "", thread: str = "") -> Message:
        """With Slack's own tokens, such as ``<https://a.b|a.b>``."""
        return self._act(lambda: self._post(self._channel(channel), text, thread))

    def sends_pictures(self, text: str, *pictures: bytes) -> Message:
        """One message with them all."""

        def write() -> Message:
            keep = self._world.keep_file
            files = tuple(keep(f"{n}.png", "image/png", data) for n, data in enumerate(pictures))
            return self._post(self._channel(""), text, "", subtype="file_share", files=files)

        return self._act(write)

    def sends_file(
        self,
        name: str = "notes.txt",
        data: bytes = b"notes",
        text: str = "",
        mimetype: str = "text/plain",
        *,
        channel: str = "",
        thread: str = "",
    ) -> Message:
        def write() -> Message:
            file = self._world.keep_file(name, mimetype, data)
            return self._post(
                self._channel(channel), text, thread, subtype="file_share", files=(file,)
            )

        return self._act(write)

    def shares_file(self, file: File, text: str = "") -> Message:
        return self._act(
            lambda: self._post(self._channel(""), text, "", subtype="file_share", files=(file,))
        )

    def edits(self, ts: str, text: str, *, channel: str = "") -> None:
        def write() -> None:
            place = self._channel(channel)
            before = self._world.message_json(place.messages[ts])
            place.messages[ts].text = html.escape(text, quote=False)
            place.messages[ts].edits += 1
            after = self._world.message_json(place.messages[ts])
            self._tell(
                place,
                {"subtype": "message_changed", "message": after, "previous_message": before},
            )

        self._act(write)

    def deletes(self, ts: str, *, channel: str = "") -> None:
        def write() -> None:
            place = self._channel(channel)
            before = self._world.message_json(place.messages.pop(ts))
            self._tell(
                place,
                {"subtype": "message_deleted", "deleted_ts": ts, "previous_message": before},
            )

        self._act(write)

    def clicks(self, ts: str, value: str, *, channel: str = "") -> Envelope:
        def write() -> Envelope:
            place = self._channel(channel)
            message = place.messages[ts]
            pressed = [button for button in message.buttons if button["value"] == value]
            if not pressed:
                raise AssertionError(f"no button {value!r} on {message.buttons!r}")
            container = {"type": "message", "message_ts": ts, "channel_id": place.id}
            if message.thread_ts:
                container["thread_ts"] = message.thread_ts
            payload = {
                "type": "block_actions",
                "user": {"id": self.id, "username": self._person.name.lower(), "team_id": TEAM},
                "api_app_id": APP,
                "container": container,
                "trigger_id": f"trigger-{self.id}-{self._number()}",
                "team": {"id": TEAM, "domain": "standin"},
                "channel": {"id": place.id, "name": place.name or "directmessage"},
                "message": self._world.message_json(message),
                "response_url": "https://hooks.invalid/actions",
                "actions": [pressed[0] | {"action_ts": self._world.timestamp()}],
            }
            return self._events.add("interactive", payload)

        return self._act(write)

    def commands(self, text: str, *, channel: str = "", command: str = "/stillhere") -> Envelope:
        """Slack's apps have no slash commands in threads."""

        def write() -> Envelope:
            place = self._channel(channel)
            payload = {
                "command": command,
                "text": text,
                "team_id": TEAM,
                "channel_id": place.id,
                "channel_name": place.name or "directmessage",
                "user_id": self.id,
                "user_name": self._person.name.lower(),
                "api_app_id": APP,
                "trigger_id": f"trigger-{self.id}-{self._number()}",
                "response_url": "https://hooks.invalid/commands",
            }
            return self._events.add("slash_commands", payload)

        return self._act(write)

    def blocks_bot(self) -> None:
        self._refuse(slack_error("channel_not_found"))

    def unblocks_bot(self) -> None:
        self._refuse(None)

    def _refuse(self, refusal: Refuse | None) -> None:
        with self._changes.lock:
            self._channel("").refusal = refusal

    def _channel(self, channel: str) -> Channel:
        return self._world.channels[channel] if channel else self._world.direct(self.id)

    def _post(self, channel: Channel, text: str, thread: str, **fields: Any) -> Message:
        number = self._number()
        named = {"thread_ts": thread, "client_msg_id": f"client-{self.id}-{number}"} | fields
        message = self._world.post(channel, self.id, text, **named)
        event = self._world.message_json(message)
        if MENTION in text and channel.has_bot and channel.kind != "im":
            self._events.add_event("app_mention", event | {"channel": channel.id})
        self._tell(channel, event)
        return message

    def _tell(self, channel: Channel, event: Json) -> None:
        if channel.has_bot:
            place = {"channel": channel.id, "channel_type": channel.kind}
            self._events.add_event("message", {"ts": self._world.timestamp()} | event | place)

    def _number(self) -> int:
        self._acts += 1
        return self._acts

    def _act(self, write: Callable[[], T]) -> T:
        with self._changes.lock:
            result = write()
        self._changes.announce()
        return result


def bot_message(text: str) -> Json:
    """The fields of another app's message, which a person did not write."""
    return {"subtype": "bot_message", "bot_id": f"{BOT_ID}X", "text": text}
