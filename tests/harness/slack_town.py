"""Slack's town: one DM by Socket Mode; with a port, by posts to the service."""

from collections.abc import Mapping

from bots.platforms.slack import PLATFORM
from tests.standins.base import Call
from tests.standins.slack import SlackStandIn
from tests.standins.slack_events import Envelope

ACK_SECONDS = 1.0
"""Slack waits longer; a kill costs a run that much."""


class SlackTown:
    platform = PLATFORM
    key = "agent:main:slack:dm:T1.U7"
    can_ask = True
    known: Mapping[str, str] = {}
    _SHOWN = ("chat.postMessage", "chat.update")

    def __init__(self) -> None:
        self.stand_in = SlackStandIn()
        self.stand_in.events.ack_seconds = ACK_SECONDS
        self.ada = self.stand_in.user("U7", "Ada")
        self._newest: Envelope | None = None

    def environment(self, port: int) -> Mapping[str, str]:
        url = f"http://127.0.0.1:{port}/slack/events" if port else ""
        self.stand_in.events.request_url = url
        ways = ("SLACK_SIGNING_SECRET", self.stand_in.signing_secret)
        name, value = ways if port else ("SLACK_APP_TOKEN", self.stand_in.app_token)
        return {
            "SLACK_BOT_TOKEN": self.stand_in.bot_token,
            "SLACK_API_URL": self.stand_in.api_url,
            name: value,
        }

    def says(self, text: str) -> None:
        self.ada.says(text)
        self._newest = self.stand_in.events.envelopes[-1]

    def sends(self, text: str, *pictures: bytes) -> int:
        self.ada.sends_pictures(text, *pictures)
        return 1

    def repeats(self) -> None:
        assert self._newest is not None
        self.stand_in.redeliver(self._newest)

    def bot_texts(self) -> list[str]:
        """Without the marks of emphasis, which Slack shows as such."""
        return [text.strip("_") for text in self.ada.bot_texts()]

    @property
    def pending(self) -> bool:
        return bool(self.stand_in.events.open_ones)

    def counts(self, call: Call) -> bool:
        return call.method in self._SHOWN

    def brought(self, call: Call) -> bool:
        """Events come by the socket, or by posts: by no answer to a call."""
        return False
