"""The one exit: claims promised messages, paces, sends and settles them; it composes nothing."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import structlog

from core.errors import PermanentError, StorageError, TransientError, UnknownOutcomeError
from core.ports import UNWATCHED, Channel, Claimed, Clock, Outbox, Span, Telemetry
from core.runtime.holder import Holder
from core.runtime.limiter import Limiter
from core.runtime.retrying import Seldom, backoff, insist
from core.runtime.whole import ended, whole

SWEEP = 1.0
"""Seconds between looks at the outbox when nothing nudges."""
WAIT_SHARE = 0.15
"""Of its claim's time that a row waits for a place in the pace; then it goes back, as one whose
chat is blocked for longer does at once."""
SEND_SHARE = 0.8
"""Of its claim's time that one send may take."""
MOST_WAITING = 50
"""Rows that wait for a place at the same time; what they would only wait for is not claimed."""
PUT_BACK = 1.0
"""Seconds after which a row that found no place comes again, at the earliest."""
MOST_DOUBTS = 200
"""How often it may be unknown whether a message is out: each time it is sent again it may be there
once more, and with the longest pause of five minutes that is over half a day. What is proved not to
be out is never given up."""
LONGEST_PAUSE = 300.0
ASK_AGAIN = 5.0
"""Seconds after which a platform is asked again what it could not say of a message."""
FRESH = 30.0
"""Seconds for which its word counts that a message is not there; before one that was in doubt is
sent later than that, it is asked once more."""

log = structlog.get_logger(__name__)


class Delivery:
    def __init__(  # noqa: PLR0913 (all of it from outside)
        self,
        outbox: Outbox,
        channels: Mapping[str, Channel],
        limiter: Limiter,
        clock: Clock,
        holder: Holder,
        telemetry: Telemetry = UNWATCHED,
    ) -> None:
        """``holder``'s seconds are how long a claim lasts; a send is broken off before that."""
        self._outbox = outbox
        self._channels = channels
        self._platforms = frozenset(channels)
        self._limiter = limiter
        self._clock = clock
        self._holder = holder
        self._telemetry = telemetry
        self._seldom = Seldom(clock)
        self._nudged = asyncio.Event()
        self._sends: set[asyncio.Task[None]] = set()
        self._in_hand: set[int] = set()
        """Positions of rows that a task of ours sends or settles: they are no one else's, whatever
        the database says of their claims."""
        self._waiting = 0
        """How many of them have no place in the pace yet."""
        self._unsaid: dict[int, float] = {}
        """Until when, in the loop's time, nobody is asked about a row, since nobody could say."""
        self._absent: dict[int, float] = {}
        """Until when a row counts as one that did not arrive."""
        self._failures = Counter[int]()
        """Of rows that are still to be sent; how often they waited for a place is not in it."""

    def nudge(self) -> None:
        """There may be something to send."""
        self._nudged.set()

    async def run(self) -> None:
        """Until it is cancelled; what is being sent then is finished by ``drain``."""
        while True:
            busy = False
            try:
                busy = await self.sweep()
            except StorageError as error:
                self._seldom.warn("outbox unreadable", error)
            except Exception:
                log.exception("outbox not swept")
            if not busy:
                await self._wait()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(SWEEP):
                await self._nudged.wait()
        except TimeoutError:
            pass
        self._nudged.clear()

    async def sweep(self) -> bool:
        """Settles what is unknown and begins to send what is due; True if there was anything.

        Raises StorageError.
        """
        self._unsaid, self._absent = _still(self._unsaid), _still(self._absent)
        resting = self._in_hand | self._unsaid.keys()
        doubts = await self._outbox.unsettled(
            self._clock.now(), platforms=self._platforms, beside=resting
        )
        for doubtful in doubts:
            self._begin(doubtful, self._settle(doubtful))
        room = MOST_WAITING - self._waiting
        if room <= 0:
            return False
        began = _time()
        claimed = await self._claim(room)
        for row in claimed:
            if row.doubts and row.position not in self._absent:
                self._begin(row, self._ask_once_more(row))
            else:
                self._waiting += 1
                self._begin(row, self._deliver(row, began))
        return bool(claimed)

    async def _claim(self, room: int) -> tuple[Claimed, ...]:
        """Rows that a stop finds claimed and in nobody's hands yet go back at once. Raises
        StorageError."""
        now = self._clock.now()
        lease = self._holder.lease(now)
        claim = await ended(self._outbox.claim(now, lease, room, self._platforms))
        rows = claim.result()
        if claim.cancelled:
            await asyncio.gather(*(self._cut_short(row) for row in rows))
        claim.go_on()
        return rows

    def _begin(self, row: Claimed, work: Coroutine[Any, Any, None]) -> None:
        """One platform that is slow holds up no other."""
        self._in_hand.add(row.position)
        task = asyncio.create_task(work)
        self._sends.add(task)
        task.add_done_callback(self._sends.discard)
        task.add_done_callback(lambda _: self._in_hand.discard(row.position))

    async def drain(self, seconds: float) -> None:
        """Sends what can be sent within that time; the rest keeps its place. Nothing is being sent
        any more when it ends, however it ends. Raises StorageError."""
        try:
            async with asyncio.timeout(seconds):
                while await self.sweep() or self._sends:
                    await asyncio.gather(*self._sends, return_exceptions=True)
        except TimeoutError:
            pass
        finally:
            await self._abort()

    async def _abort(self) -> None:
        sends = tuple(self._sends)
        for task in sends:
            task.cancel()
        await asyncio.gather(*sends, return_exceptions=True)

    async def _settle(self, row: Claimed) -> None:
        """Of a row in doubt."""
        message, now = row.message, self._clock.now()
        try:
            found = await self._look_up(row)
        except Exception as error:  # noqa: BLE001 - the top of a task; the row stays in doubt
            self._unsaid[row.position] = _time() + _pause_of(error)
            return
        if found is not None:
            await self._sent(row, found)
        elif message.kind == "preview":
            why = "nobody knows whether it arrived"
            await self._store(lambda: self._outbox.give_up(row, why, now))
        elif row.doubts >= MOST_DOUBTS:
            await self._give_up(row, f"unknown {row.doubts} times whether it arrived")
        else:
            await self._again(row, TransientError("nobody knows whether it arrived"))
        self.nudge()

    async def _ask_once_more(self, row: Claimed) -> None:
        """It is to be sent again, long after it was not there, or after the process that looked has
        ended: the platform may not know any more that it is the same message."""
        try:
            found = await self._look_up(row)
        except asyncio.CancelledError:
            await self._cut_short(row)
            raise
        except Exception as error:  # noqa: BLE001 - the top of a task; the row is sent later
            await self._put_back(row, _pause_of(error), repr(error))
        else:
            if found is None:
                await self._put_back(row, 0.0, "it did not arrive")
            else:
                await self._sent(row, found)
        self.nudge()

    async def _look_up(self, row: Claimed) -> str | None:
        """A platform that will never say whether it arrived is one that cannot be asked."""
        message = row.message
        channel = self._channels[message.address.platform]
        try:
            async with asyncio.timeout(self._holder.seconds * SEND_SHARE):
                found = await channel.lookup(message, row.created_at)
        except PermanentError as error:
            log.warning("unknown send cannot be looked up", message=message.id, error=str(error))
            found = None
        except Exception as error:
            log.warning("unknown send not settled yet", message=message.id, error=repr(error))
            raise
        log.info("unknown send settled", message=message.id, arrived=found is not None)
        if found is None:
            self._absent[row.position] = _time() + FRESH
        return found

    async def _deliver(self, row: Claimed, began: float) -> None:
        """``began`` is when it was claimed, in the loop's time."""
        try:
            placed = await self._placed(row, began + self._holder.seconds * WAIT_SHARE)
        finally:
            self._waiting -= 1
        if placed:
            await self._send_and_settle(row, began + self._holder.seconds)
        else:
            pause = max(PUT_BACK, self._limiter.blocked_for(row.message.address))
            await self._put_back(row, pause, "no place yet")
        self.nudge()

    async def _placed(self, row: Claimed, until: float) -> bool:
        """Whether it has a place in the pace early enough for its send to end before its claim."""
        address = row.message.address
        if _time() + self._limiter.blocked_for(address) >= until:
            return False
        try:
            async with asyncio.timeout_at(until):
                await self._limiter.acquire(address)
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            await self._cut_short(row)
            raise
        return True

    async def _cut_short(self, row: Claimed) -> None:
        """Nothing was sent."""
        with suppress(StorageError):
            await whole(self._outbox.retry(row, self._clock.now(), "cut short by a stop"))

    async def _put_back(self, row: Claimed, pause: float, why: str) -> None:
        """Nothing was sent, and nothing failed."""
        again = self._clock.now() + timedelta(seconds=pause)
        log.info("put back", message=row.message.id, why=why, pause=pause)
        await self._store(lambda: self._outbox.retry(row, again, why))

    async def _send_and_settle(self, row: Claimed, until: float) -> None:
        """``until`` is when its claim is over, in the loop's time."""
        try:
            platform_id = await self._send(row, until)
        except TransientError as error:
            await self._again(row, error)
        except PermanentError as error:
            await self._give_up(row, str(error))
        except asyncio.CancelledError:
            with suppress(StorageError):
                await whole(self._outbox.unknown(row, "cut short by a stop"))
            raise
        except Exception as error:
            if not isinstance(error, UnknownOutcomeError | TimeoutError):
                log.exception("send broke off", message=row.message.id)
            reason = str(error) or "no answer in time"
            await self._store(lambda: self._outbox.unknown(row, reason))
        else:
            await self._sent(row, platform_id)

    async def _store(self, write: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What has begun to be stored of a row is stored, whatever is cancelled meanwhile: else it
        would be a doubt."""
        await insist(self._clock, lambda: whole(write()))

    async def _sent(self, row: Claimed, platform_id: str) -> None:
        now = self._clock.now()
        self._failures.pop(row.position, None)
        await self._store(lambda: self._outbox.sent(row, platform_id, now))

    async def _give_up(self, row: Claimed, reason: str) -> None:
        now = self._clock.now()
        self._failures.pop(row.position, None)
        log.error("message given up", message=row.message.id, error=reason)
        await self._store(lambda: self._outbox.give_up(row, reason, now))

    async def _send(self, row: Claimed, until: float) -> str:
        message = row.message
        platform = message.address.platform
        watched = Span(kind="send", platform=platform, turn=message.turn)
        with self._telemetry.span(watched) as span:
            try:
                async with asyncio.timeout(self._holder.seconds * SEND_SHARE):
                    sent = await self._send_now(self._channels[platform], row, until)
            except BaseException as error:
                span.outcome = _outcome_of(error)
                raise
            span.outcome = "sent"
        return sent

    async def _send_now(self, channel: Channel, row: Claimed, until: float) -> str:
        message = row.message
        if row.preview_id:
            _require_claim(until)
            try:
                await channel.edit(message.address, row.preview_id, message.part)
            except UnknownOutcomeError as error:
                raise TransientError(f"edit unanswered: {error}") from error
            except PermanentError as error:
                log.info("preview is gone", message=message.id, error=str(error))
            else:
                return row.preview_id
        _require_claim(until)
        return await channel.send(message)

    async def _again(self, row: Claimed, error: TransientError) -> None:
        message = row.message
        now = self._clock.now()
        if error.retry_after is not None:
            self._limiter.block(message.address, error.retry_after)
        self._failures[row.position] += 1
        growing = backoff(self._failures[row.position], LONGEST_PAUSE)
        pause = timedelta(seconds=error.retry_after or growing)
        log.warning("not sent yet", message=message.id, error=str(error), pause=pause.seconds)
        await self._store(lambda: self._outbox.retry(row, now + pause, str(error)))


def _require_claim(until: float) -> None:
    """A process that slept past its claim sends nothing: the row may be another's by now. Raises
    TransientError."""
    if _time() >= until:
        raise TransientError("its claim was over before it could be sent")


def _time() -> float:
    """The loop's, which no correction of a clock moves."""
    return asyncio.get_running_loop().time()


def _still(ends: Mapping[int, float]) -> dict[int, float]:
    now = _time()
    return {position: end for position, end in ends.items() if end > now}


def _outcome_of(error: BaseException) -> str:
    """In the words of what becomes of the row."""
    match error:
        case TransientError():
            return "retried"
        case PermanentError():
            return "failed"
        case _:
            return "unknown"


def _pause_of(error: Exception) -> float:
    """Seconds after which it may be asked again."""
    return getattr(error, "retry_after", None) or ASK_AGAIN
