"""Shows an answer in the making: typing, then a message that grows; all of it best effort."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

import msgspec
import structlog
from msgspec.structs import replace

from core.domain.keys import Address
from core.domain.messages import OutboxMessage, Part
from core.domain.values import clean
from core.errors import PermanentError, StorageError, TransientError, UnknownOutcomeError
from core.ports import Channel, Claimed, Clock, Outbox, PreviewState
from core.runtime.holder import Holder
from core.runtime.limiter import Limiter
from core.runtime.retrying import insist
from core.runtime.whole import ended, whole

TICK = 0.4
"""Seconds between looks at the text."""
TYPING_EVERY = 4.0
"""No platform shows typing for less than five seconds."""
TYPING_LONGEST = 600.0
CALL_SHARE = 0.8
"""Of its row's claim that one call may take. It is waited for even when the answer is there: what
is cut short may arrive all the same, beside the answer or over it."""
SURE_SHARE = 0.5
"""Of a lease, for which it is believed to be ours without asking again; leases are renewed at a
third."""
CLOSING = 1.0
"""Seconds that a call which a stop cuts short has for saying so."""

log = structlog.get_logger(__name__)


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Where previews are shown: one platform's channel and what all calls to it share."""

    channel: Channel
    outbox: Outbox
    limiter: Limiter
    clock: Clock
    holder: Holder


class Preview:
    """One turn's preview. Its row in the outbox outlives the process: a resumed turn goes on in the
    same message, and the final text edits it."""

    def __init__(self, message_id: str, key: str, address: Address, stage: Stage) -> None:
        self._message_id = message_id
        self._key = key
        self._address = address
        self._stage = stage
        self._text = ""
        self._shown: Part | None = None
        self._out: Claimed | None = None
        """The row, once its message is out."""
        self._muted = False
        self._resting = False
        self._sure_until = stage.clock.now()
        """Until when nobody else can have taken the turn."""
        self._task: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._pump())

    def update(self, text: str) -> None:
        """The whole text so far."""
        self._text = text

    async def close(self) -> None:
        """After this nothing more is shown; what is being shown is waited for."""
        task, self._task = self._task, None
        if task is None:
            return
        self._muted = True
        if self._resting:
            task.cancel()
        _, late = await asyncio.wait({task}, timeout=self._stage.holder.seconds)
        for pending in late:
            pending.cancel()
            with suppress(asyncio.CancelledError):
                await pending

    async def _pump(self) -> None:
        clock = self._stage.clock
        began = typed = clock.now()
        await self._typing()
        while not self._muted:
            self._resting = True
            await clock.sleep(TICK)
            self._resting = False
            now = clock.now()
            if (self._text and not await self._show()) or self._muted:
                return
            quiet = (now - typed).total_seconds() >= TYPING_EVERY
            young = (now - began).total_seconds() < TYPING_LONGEST
            if quiet and young and self._out is None:
                typed = now
                await self._typing()

    async def _typing(self) -> None:
        stage = self._stage
        if not stage.limiter.try_acquire(self._address):
            return
        self._resting = True
        try:
            await stage.channel.typing(self._address)
        except TransientError as error:
            self._slow_down(error)
        except (PermanentError, UnknownOutcomeError):
            pass

    async def _show(self) -> bool:
        """False when there is no use in going on."""
        stage = self._stage
        part = stage.channel.preview(clean(self._text))
        if part is None or part == self._shown:
            return True
        if not stage.limiter.try_acquire(self._address):
            return True
        try:
            if self._out is None:
                return await self._open(part)
            if not await self._is_ours(self._out):
                return False
            await self._edit(self._out, part)
        except TransientError as error:
            self._slow_down(error)
        except UnknownOutcomeError:
            pass
        except PermanentError as error:
            log.info("preview ended", message=self._message_id, error=str(error))
            return False
        except TimeoutError:
            return False
        self._shown = part
        return True

    async def _edit(self, row: Claimed, part: Part) -> None:
        """Raises as the channel does, and TimeoutError."""
        try:
            async with self._in_time():
                await self._stage.channel.edit(self._address, row.preview_id, part)
        except (TimeoutError, asyncio.CancelledError) as error:
            await self._doubt(row, error)
            raise

    def _in_time(self) -> asyncio.Timeout:
        return asyncio.timeout(self._stage.holder.seconds * CALL_SHARE)

    async def _open(self, part: Part) -> bool:
        message = OutboxMessage(
            id=self._message_id, key=self._key, address=self._address, kind="preview", part=part
        )
        try:
            opening = await ended(self._row_of(message))
            state, row = opening.result()
        except StorageError as error:
            log.warning("no preview", message=self._message_id, error=str(error))
            return False
        late = self._stage.clock.now() >= self._sure_until
        if row is not None and state == "opened" and (opening.cancelled or late):
            stage, why = self._stage, "cut short by a stop, or by standing still"
            with suppress(StorageError):
                await whole(stage.outbox.retry(row, stage.clock.now(), why))
        opening.go_on()
        if row is None:
            return state == "held"
        if state == "opened":
            return not late and await self._send(row)
        self._out = row
        return True

    async def _row_of(self, message: OutboxMessage) -> tuple[PreviewState, Claimed | None]:
        """Of a turn that is still ours. Raises StorageError."""
        now = self._stage.clock.now()
        lease = self._stage.holder.lease(now, held=True)
        found = await self._stage.outbox.open_preview(message, lease, now)
        self._sure_until = now + timedelta(seconds=self._stage.holder.seconds * SURE_SHARE)
        return found

    async def _is_ours(self, row: Claimed) -> bool:
        """Whether another process may not have taken the turn, as it does when this one stood still
        or lost its database: what it shows stays as it is. Asked again when the last time is long
        ago; False also when nobody can say."""
        if self._stage.clock.now() < self._sure_until:
            return True
        try:
            state, _ = await self._row_of(row.message)
        except StorageError:
            return False
        return state == "sent"

    async def _send(self, row: Claimed) -> bool:
        """The first text. Whatever happens, its row does not stay «sending»."""
        outbox, now = self._stage.outbox, self._stage.clock.now()
        try:
            async with self._in_time():
                sent = await self._stage.channel.send(row.message)
        except TransientError as error:
            self._slow_down(error)
            reason = str(error)
            self._settle(lambda: outbox.retry(row, now, reason))
            await self.settled()
            return True
        except (PermanentError, UnknownOutcomeError, TimeoutError) as error:
            await self._doubt(row, error)
            return False
        except asyncio.CancelledError as error:
            await self._doubt(row, error)
            raise
        self._out, self._shown = replace(row, preview_id=sent), row.message.part
        self._settle(lambda: outbox.sent(row, sent, now))
        return True

    async def _doubt(self, row: Claimed, error: BaseException) -> None:
        """The answer will not edit this message: nobody knows what it shows, or is about to."""
        reason = str(error) or "cut short"
        settling = self._settle(lambda: self._stage.outbox.unknown(row, reason))
        if isinstance(error, asyncio.CancelledError):
            await asyncio.wait({settling}, timeout=CLOSING)

    def _settle(self, write: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        self._settling = asyncio.create_task(self._write_after(self._settling, write))
        return self._settling

    async def _write_after(
        self, earlier: asyncio.Task[None] | None, write: Callable[[], Awaitable[None]]
    ) -> None:
        if earlier is not None:
            await asyncio.wait({earlier})
        await insist(self._stage.clock, write)

    async def settled(self) -> None:
        """Until the database knows what became of the message: only then does the answer that is to
        edit it find it."""
        if self._settling is not None:
            await asyncio.shield(self._settling)

    def _slow_down(self, error: TransientError) -> None:
        if error.retry_after is not None:
            self._stage.limiter.block(self._address, error.retry_after)
