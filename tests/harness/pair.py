"""Two replicas of the service on one database: one is killed, or stands still for longer than its
lease, and the other has to take over; it looks only from outside."""

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec
import psutil

from core.errors import StorageError
from tests.harness.balancer import Balancer
from tests.harness.child import Birth, RatedClock
from tests.harness.keeper import Keeper
from tests.harness.kills import NO_KILL, OTHERS, Cell, Kill, Write
from tests.harness.lab import LOOK_SECONDS, Lab, Place, Zygote, free_port
from tests.harness.stored import changes, stored
from tests.standins.base import Call
from tests.standins.faults import Fault, Reset
from tests.standins.openai import COMPLETIONS
from tests.standins.telegram_updates import Conflict

NAMES = {0: "first", OTHERS: "second"}
UP_SECONDS = 60.0
OVER = 1.25
"""Times its lease that one stands still at least."""
AWAKE_SECONDS = 1.5
"""For so long it is watched what one does that stood still: longer than any of its jobs waits."""
SLACK = 0.2
"""Seconds between a stop and when it is seen."""
LOG_TAIL = 2900
LOST = "lease lost"
"""What the service's log says of the lease of a bot's token."""


class Pause(msgspec.Struct, kw_only=True):
    """``wrote`` is how many lines the trace of the ``life`` had when it came to stand still, at
    ``since``, in Unix time."""

    life: int
    who: str
    since: float
    wrote: int
    until: float = float("inf")
    faults: list[str] = []
    over: bool = False

    def covers(self, at: float) -> bool:
        """Also what it does on waking."""
        return self.since - SLACK <= at <= self.until + AWAKE_SECONDS


class PairLab(Lab):
    """The first is up before the second, so that it is the one which works; ``cell`` may be about
    either."""

    def __init__(self, zygote: Zygote, place: Place, cell: Cell = NO_KILL) -> None:
        super().__init__(zygote, place, cell)
        self._second = self._keeper(zygote, OTHERS)
        for keeper in self.keepers:
            keeper.may_rise = self._may_rise
        self._stops = place.form == "one paused"
        self._pauses: list[Pause] = []
        self._clock = RatedClock(place.rate, Birth(environment={}, log="", trace="").epoch)
        self._balancer = Balancer(free_port(), self._heard) if place.webhook else None
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "PairLab":
        if self._balancer is not None:
            await self._balancer.start()
        await super().__aenter__()
        self._watch = asyncio.create_task(self._watches())
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._watch is not None:
            self._watch.cancel()
        await super().__aexit__(*error)
        if self._balancer is not None:
            await self._balancer.stop()
        if self._watch is not None:
            await asyncio.gather(self._watch, return_exceptions=True)

    @property
    def keepers(self) -> tuple[Keeper, ...]:
        return (self._first, self._second)

    @property
    def struck(self) -> int:
        return self.died + len(self._pauses)

    @property
    def restarts(self) -> int:
        return self.lives - len(self.keepers) + len(self._pauses)

    async def up(self) -> None:
        await self._first.up()
        await self._until(self._first, lambda code: code == 200)
        await self._second.up()
        await self._until(self._second, bool)

    async def leaves(self) -> None:
        self._first.part(signal.SIGTERM)
        await self._first.gone()
        await self._watched()

    async def _until(self, keeper: Keeper, well: Callable[[int], bool]) -> None:
        """Its health check says so, or something was done to it already."""
        with suppress(TimeoutError):
            async with asyncio.timeout(UP_SECONDS):
                while not well((await self._readiness(keeper))[0]):
                    if not keeper.pid or _stands_still(keeper.pid):
                        return
                    await asyncio.sleep(LOOK_SECONDS)

    async def _may_rise(self) -> bool:
        """When the other has done all the work without it, or cannot do it either."""
        able = [one for one in self.keepers if one.pid and not _stands_still(one.pid)]
        return not able or await super()._is_settled()

    async def down(self) -> None:
        await super().down()
        await self._watched()

    async def _watched(self) -> None:
        """Until nobody is looked at any more."""
        while not all(pause.over for pause in self._pauses):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)

    async def _is_settled(self) -> bool:
        """What was written last may be seen before its writer has come to stand still."""
        if not self._all_awake() or not await super()._is_settled():
            return False
        await asyncio.sleep(LOOK_SECONDS)
        return self._all_awake()

    def _all_awake(self) -> bool:
        if any(keeper.pid and _stands_still(keeper.pid) for keeper in self.keepers):
            return False
        return all(pause.over for pause in self._pauses)

    @property
    def was_starved(self) -> bool:
        """One lost its lease while it did not stand still: the machine was too busy for it."""
        return any(
            not any(pause.life in keeper.lives and pause.covers(at) for pause in self._pauses)
            for keeper in self.keepers
            for at in _losses(self._log_of(keeper.first))
        )

    def until_struck(self) -> dict[int, list[Write]]:
        cuts = {pause.life: pause.wrote for pause in self._pauses}
        return {life: writes[: cuts.get(life)] for life, writes in self.writes().items()}

    def complaints(self) -> list[str]:
        found = [fault for pause in self._pauses for fault in pause.faults]
        found += [f"the {pause.who} still stands still" for pause in self._pauses if not pause.over]
        for conflict in self.telegram.updates.conflicts:
            if not any(_explains(pause, conflict) for pause in self._pauses):
                found.append(f"409: the {conflict.by} polled while the {conflict.who} did")
        return found

    def log(self) -> str:
        tails = [f"{NAMES[k.first]}:\n{self._log_of(k.first)[-LOG_TAIL:]}" for k in self.keepers]
        return "\n".join(tails)

    def _birth(self, life: int) -> Birth:
        birth = super()._birth(life)
        who = NAMES[life // OTHERS * OTHERS]
        urls = {one.url: one.url_for(who) for one in (self.telegram, self.model)}
        environment = dict(birth.environment)
        for name, value in environment.items():
            for url, own in urls.items():
                if value.startswith(url):
                    environment[name] = own + value.removeprefix(url)
        by = signal.SIGSTOP if self._stops else signal.SIGKILL
        renew = self._place.lease / self.rate / 3
        return msgspec.structs.replace(birth, environment=environment, by=by, renew_every=renew)

    @property
    def _public_port(self) -> int:
        return self._balancer.port if self._balancer else 0

    def _heard(self) -> list[int]:
        return [port for port in map(self._heard_on, self.keepers) if port]

    def _caller(self, call: Call) -> Keeper:
        return self._second if call.who == NAMES[OTHERS] else self._first

    def _strike(self, keeper: Keeper, kill: Kill) -> Fault | None:
        if not self._stops:
            return super()._strike(keeper, kill)
        keeper.signal(signal.SIGSTOP)
        return None if kill.after else Reset()

    async def _watches(self) -> None:
        while True:
            for keeper in self.keepers:
                if keeper.pid and _stands_still(keeper.pid):
                    await self._sits_out(keeper)
            await asyncio.sleep(LOOK_SECONDS)

    async def _sits_out(self, keeper: Keeper) -> None:
        pause = Pause(
            life=keeper.life,
            who=NAMES[keeper.first],
            since=time.time(),
            wrote=len(self._written(keeper.life)),
        )
        self._pauses.append(pause)
        self._tell_of_death()
        await asyncio.sleep(self._place.lease / self.rate * OVER)
        while not await self._is_done():  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        before, woke = await stored(self.database), time.monotonic()
        pause.until = time.time()
        keeper.signal(signal.SIGCONT)
        await self._until(keeper, bool)
        await asyncio.sleep(AWAKE_SECONDS)
        wrote = changes(before, await stored(self.database))
        pause.faults = [f"when it woke, {what}" for what in (*wrote, *self._sent(keeper, woke))]
        pause.over = True

    async def _is_done(self) -> bool:
        """Nothing is left to do, and no clock will ring while it is watched."""
        soon = self._clock.now() + timedelta(seconds=2 * AWAKE_SECONDS * self.rate)
        try:
            if await (await self.store()).due(soon):
                return False
        except StorageError:
            return False
        return await super()._is_settled()

    def _sent(self, keeper: Keeper, since: float) -> list[str]:
        """Not where the clock runs fast: how long a claim is good for is measured by the loop's own
        time, and a model's pauses are over before the lease is looked at."""
        calls = [*self.telegram.calls, *self.model.calls] if self.rate == 1.0 else []
        return [
            f"it called {call.method}"
            for call in calls
            if call.at >= since and self._caller(call) is keeper
            if call.method == COMPLETIONS or self.town.counts(call)
        ]


def _stands_still(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    return False


def _explains(pause: Pause, conflict: Conflict) -> bool:
    """One that stands still cannot let go of its poll, and one that wakes polls once before it has
    looked whose the messages are; what it is brought is known by then."""
    who = pause.who in (conflict.who, conflict.by if conflict.at >= pause.until else "")
    return who and pause.covers(conflict.at)


def _losses(log: str) -> list[float]:
    """When, in Unix time."""
    lines = [line for line in log.splitlines() if LOST in line]
    return [datetime.fromisoformat(line.split()[0]).timestamp() for line in lines]
