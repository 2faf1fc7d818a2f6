"""Says what was promised, in Slack's own calls; it never repeats one that may have arrived."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import structlog

from bots.platforms.signs import Signs
from bots.platforms.slack import compose, faults
from bots.platforms.slack.client import Answer, Client, next_cursor
from bots.platforms.slack.previews import Previews
from bots.platforms.slack.status import Status
from bots.platforms.slack.streams import Streams
from bots.render import slack as rendering
from core.domain.keys import Address
from core.domain.messages import Attachment, OutboxMessage, Part
from core.errors import PermanentError, TransientError
from core.ports import Clock

MARGIN = timedelta(minutes=10)
"""How far two clocks may be apart."""
PREVIEW_AGE = timedelta(days=7)
PAGE = 100
MOST_PAGES = 10
_BAD_BLOCKS = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})
_STREAMING = "streaming_state_conflict"

Result = TypeVar("Result")

log = structlog.get_logger(__name__)


class SlackChannel:
    def __init__(
        self, client: Client, signs: Signs, clock: Clock, redact: Callable[[str], str]
    ) -> None:
        self._client = client
        self._signs = signs
        self._clock = clock
        self._redact = redact
        self._streams = Streams(client)
        self._previews = Previews(clock)
        self._status = Status(client, clock)

    def render(self, text: str) -> tuple[Part, ...]:
        return rendering.render(text)

    def preview(self, text: str) -> Part | None:
        return rendering.render_preview(text)

    async def send(self, message: OutboxMessage) -> str:
        sent = await self._call(lambda: self._send(message))
        self._signs.outbound()
        return sent

    async def edit(self, address: Address, platform_id: str, part: Part) -> None:
        await self._call(lambda: self._edit(address, platform_id, part))

    async def typing(self, address: Address) -> None:
        """Slack shows it in threads alone. What Slack refuses of it is no one's trouble."""
        try:
            await self._call(lambda: self._status.show(address))
        except PermanentError as error:
            log.debug("no status", error=str(error))

    async def lookup(self, message: OutboxMessage, since: datetime) -> str | None:
        """By the id that each message carries, in ten pages of history at most."""
        age = self._clock.now() - since
        try:
            return await self._call(lambda: self._by_id(message, age))
        except PermanentError as error:
            log.warning("history cannot be read, a message may come twice", error=str(error))
            return None

    async def fetch(self, attachment: Attachment, limit: int) -> bytes:
        """Raises PermanentError where it is gone, or larger than ``limit`` bytes."""
        if attachment.size > limit:
            raise PermanentError(f"the file has more than {limit} bytes")
        return await self._call(lambda: self._fetch(attachment, limit))

    async def _send(self, message: OutboxMessage) -> str:
        stream = compose.stream_of(message.part)
        if stream is not None:
            return await self._send_preview(message, stream)
        if self._previews.may_be_out(message.edits):
            left = await self._left(message)
            if left is not None:
                return left
        ts = await self._post(message)
        await self._end_status(message.address, message.part)
        return ts

    async def _send_preview(self, message: OutboxMessage, stream: str) -> str:
        with self._previews.trying(message.id):
            if stream and (ts := await self._streams.start(message.address, stream)):
                return ts
            return await self._post(message)

    async def _left(self, message: OutboxMessage) -> str | None:
        """A preview of which nobody knew whether it arrived becomes the answer. Best effort: what
        cannot be found out is said anew."""
        try:
            found = await self._preview_of(message)
            if found is not None:
                await self._edit(message.address, found, message.part, message.id)
        except Exception as error:
            if faults.fault_of(error) == "unknown":
                raise
            log.info("preview not found", error=faults.described(error, self._redact))
            return None
        return found

    async def _post(self, message: OutboxMessage) -> str:
        posted = compose.post(message)
        try:
            answer = await self._client.write("chat.postMessage", **posted)
        except Exception as error:
            if faults.code_of(error) not in _BAD_BLOCKS:
                raise
            log.warning("blocks refused, sent plain", error=faults.described(error, self._redact))
            plain = posted | compose.plain_content(message.part)
            answer = await self._client.write("chat.postMessage", **plain)
        return str(answer["ts"])

    async def _edit(
        self, address: Address, ts: str, part: Part, mark: str = compose.EDITED
    ) -> None:
        stream = compose.stream_of(part)
        if stream is not None and await self._streams.grow(address, ts, stream):
            return
        await self._streams.stop(address, ts)
        edited = {"channel": address.chat, "ts": ts, **compose.edited(part, mark)}
        try:
            await self._update(edited, part)
        except Exception as error:
            if faults.code_of(error) != _STREAMING:
                raise
            # It was begun by a process that is no more.
            await self._streams.stop(address, ts, known=False)
            await self._update(edited, part)
        await self._end_status(address, part)

    async def _update(self, edited: Mapping[str, Any], part: Part) -> Answer:
        try:
            return await self._client.write("chat.update", **edited)
        except Exception as error:
            if faults.code_of(error) not in _BAD_BLOCKS:
                raise
            text = compose.escaped(part.plain, compose.MOST_FALLBACK)
            if len(text) < len(part.plain):
                raise
            plain = {"text": text, "blocks": list[Any]()}
            return await self._client.write("chat.update", **{**edited, **plain})

    async def _end_status(self, address: Address, part: Part) -> None:
        if compose.stream_of(part) is None:
            await self._status.end(address)

    async def _by_id(self, message: OutboxMessage, age: timedelta) -> str | None:
        async for seen in self._said(message.address, age):
            if compose.is_of(seen, message.id):
                return str(seen["ts"])
        return None

    async def _preview_of(self, message: OutboxMessage) -> str | None:
        """By its id; or what we said last in the thread, where it is a stream that nobody ended."""
        last: Answer = {}
        async for seen in self._said(message.address, PREVIEW_AGE):
            if compose.is_of(seen, message.edits):
                return str(seen["ts"])
            last = seen if seen.get("user") == message.address.account else last
        is_left = bool(last and message.address.thread and not last.get("metadata"))
        return str(last["ts"]) if is_left else None

    async def _said(self, address: Address, age: timedelta) -> AsyncIterator[Answer]:
        """What is not older. Newest first, but in a thread oldest first."""
        now = self._client.time or self._clock.now()
        oldest = max((now - age - MARGIN).timestamp(), 0.0)
        asked: dict[str, Any] = {
            "channel": address.chat,
            "oldest": f"{oldest:.6f}",
            "include_all_metadata": True,
            "limit": PAGE,
        }
        method = "conversations.replies" if address.thread else "conversations.history"
        if address.thread:
            asked["ts"] = address.thread
        for _ in range(MOST_PAGES):
            answer = await self._client.read(method, **asked)
            for seen in answer["messages"]:
                yield seen
            asked["cursor"] = next_cursor(answer)
            if not asked["cursor"]:
                break

    async def _fetch(self, attachment: Attachment, limit: int) -> bytes:
        answer = await self._client.read("files.info", file=attachment.ref)
        file = answer["file"]
        url = file.get("url_private_download") or file.get("url_private")
        if not url:
            raise PermanentError("Slack does not give the file out")
        return await self._client.download(str(url), limit)

    async def _call(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """A refused token is not tried again."""
        if self._signs.refused:
            raise TransientError("Slack refuses the token", faults.REFUSED_SECONDS)
        try:
            result = await call()
        except Exception as error:  # noqa: BLE001 - whatever broke, the call may have arrived
            match faults.fault_of(error):
                case "refused":
                    self._signs.enter("refused", faults.described(error, self._redact))
                case "unsent":
                    self._signs.unreached(faults.described(error, self._redact))
                case "slow down" | "later" | "rejected":
                    self._signs.heard()
                case "unknown":
                    pass
            # Without its context, which may show what has to be redacted.
            raise faults.translated(error, self._redact) from None
        self._signs.heard()
        return result
