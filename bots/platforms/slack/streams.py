"""Slack's own streams, for previews in threads of private conversations; best effort.

In a channel only one person sees a stream grow, so previews are edited there. What a stream shows
can only grow, and Slack ends it after some minutes; after either the message is edited.
"""

from collections import OrderedDict

import structlog

from bots.platforms.slack.client import Client
from bots.platforms.slack.faults import code_of, fault_of
from bots.render.slack import LIMIT
from bots.render.text import units
from core.domain.keys import Address

REMEMBERED = 1_000
_ENDED = "message_not_in_streaming_state"

log = structlog.get_logger(__name__)


class Streams:
    """Lost with the process: whatever finishes the message then finds out."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._shown = OrderedDict[str, str]()
        self._refused = set[str]()

    async def start(self, address: Address, text: str) -> str | None:
        """The message's ts; None where Slack does not allow it, which proves that none began."""
        allowed = address.chat_type == "dm" and address.thread and address.chat not in self._refused
        if not allowed or units(text) > LIMIT:
            return None
        try:
            answer = await self._client.write(
                "chat.startStream",
                channel=address.chat,
                thread_ts=address.thread,
                markdown_text=text,
            )
        except Exception as error:
            if fault_of(error) != "rejected":
                raise
            log.info("no streams here, previews are edited", reason=code_of(error))
            self._refused.add(address.chat)
            return None
        ts = str(answer["ts"])
        self._shown[ts] = text
        if len(self._shown) > REMEMBERED:
            self._shown.popitem(last=False)
        return ts

    async def grow(self, address: Address, ts: str, text: str) -> bool:
        """False where the message has to be edited."""
        shown = self._shown.get(ts)
        if shown is None or not text.startswith(shown) or units(text) > LIMIT:
            return False
        if text == shown:
            return True
        try:
            await self._client.write(
                "chat.appendStream",
                channel=address.chat,
                ts=ts,
                markdown_text=text[len(shown) :],
            )
        except Exception as error:
            if fault_of(error) == "unknown":
                # Whether it grew is not known: what comes next is an edit.
                del self._shown[ts]
                await self.stop(address, ts, known=False)
                return False
            if code_of(error) != _ENDED:
                raise
            del self._shown[ts]
            return False
        self._shown[ts] = text
        return True

    async def stop(self, address: Address, ts: str, *, known: bool = True) -> None:
        """Of those that are known; of any other with ``known=False``."""
        if known and ts not in self._shown:
            return
        try:
            await self._client.write("chat.stopStream", channel=address.chat, ts=ts)
        except Exception as error:
            if code_of(error) != _ENDED:
                raise
        self._shown.pop(ts, None)
