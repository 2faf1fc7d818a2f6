"""What befalls the fleet, at random but by a seed; it judges nothing but whether it gets well."""

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from tests.harness.chaos.fleet import Fleet
from tests.harness.chaos.replica import Replica
from tests.harness.chaos.watch import Diary, Span

KILL = "SIGKILL"
KILL_ALL = "SIGKILL, all at once"
FREEZE = "SIGSTOP past the lease"
FAST = "PostgreSQL restarted (fast)"
IMMEDIATE = "PostgreSQL restarted (immediate)"
CUT = "connections killed"
DEPLOY = "deploy"
DEPLOY_KILL = "deploy, with a SIGKILL"
RESTART = "new started as the old were stopped"
GENTLE = (DEPLOY, RESTART)
"""They break off nothing by force."""
SETTLING = 2.0
"""Seconds beyond a lease after which nobody waits any more for what a killed process had."""
DECK = (
    *(DEPLOY, DEPLOY, DEPLOY, DEPLOY_KILL, RESTART),
    *(KILL, KILL, KILL_ALL, FREEZE, FREEZE, FAST, IMMEDIATE, CUT),
)

POLLER_SHARE = 0.6
"""Of the strikes at one replica that hit the one that polls."""
DOWN_SECONDS = (0.2, 3.0)
LOOK_SECONDS = 0.1
CUT_CONNECTIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """Blows from the ``deck``, shuffled anew each time when it is used up, for ``seconds`` and at
    least once through. After each it is waited until all is well, ``within`` seconds at most, and
    then for one of ``pauses``; ``doubled`` is the share of blows that another joins."""

    deck: tuple[str, ...] = DECK
    shuffled: bool = True
    seconds: float = 600.0
    pauses: tuple[float, float] = (1.0, 6.0)
    within: float = 90.0
    doubled: float = 0.25
    settled: float = 0.5
    """The share of single deploys before which it is waited until the last blow's leases are over,
    so that what a deploy costs can be told from what a kill does."""
    frozen: tuple[float, float] = (1.2, 2.0)
    """Leases for which a replica stands still."""
    stops_when_sick: bool = False
    """Rather than to go on with a fleet that did not get well."""


class Storm:
    def __init__(self, fleet: Fleet, weather: Weather, diary: Diary, dice: random.Random) -> None:
        self.faults: list[str] = []
        self._fleet = fleet
        self._weather = weather
        self._diary = diary
        self._dice = dice
        self._database = asyncio.Lock()
        self._releasing = asyncio.Lock()
        self._blows: dict[str, Callable[[Span], Awaitable[None]]] = {
            KILL: self._kills,
            KILL_ALL: self._kills_all,
            FREEZE: self._freezes,
            FAST: lambda span: self._restarts_database(span, fast=True),
            IMMEDIATE: lambda span: self._restarts_database(span, fast=False),
            CUT: self._cuts,
            DEPLOY: self._deploys,
            DEPLOY_KILL: self._deploys_and_kills,
            RESTART: self._starts_anew,
        }

    async def rages(self) -> None:
        ends = time.monotonic() + self._weather.seconds
        await self.well("the start")
        deck: list[str] = []
        rounds = 0
        while deck or not rounds or time.monotonic() < ends:
            if not deck:
                rounds += 1
                deck = self._shuffled()
            blows = [deck.pop()]
            if deck and self._dice.random() < self._weather.doubled:
                blows.append(deck.pop())
            if (
                blows[0] in GENTLE
                and len(blows) == 1
                and self._dice.random() < self._weather.settled
            ):
                await asyncio.sleep(self._fleet.site.lease + SETTLING)
            await self._strike(blows)
            await asyncio.sleep(self._dice.uniform(*self._weather.pauses))
            over = rounds > 1 and time.monotonic() >= ends
            if over or (self.faults and self._weather.stops_when_sick):
                return

    async def well(self, after: str) -> None:
        began, newest = time.monotonic(), self._fleet.telegram.updates.newest
        while not await self._fleet.is_well(newest):
            if time.monotonic() - began > self._weather.within:
                self.faults.append(f"not well {self._weather.within:.0f} s after {after}")
                return
            await asyncio.sleep(LOOK_SECONDS)

    def _shuffled(self) -> list[str]:
        deck = list(reversed(self._weather.deck))
        if self._weather.shuffled:
            self._dice.shuffle(deck)
        return deck

    async def _strike(self, kinds: Sequence[str]) -> None:
        async with asyncio.TaskGroup() as group:
            for number, kind in enumerate(kinds):
                if number:
                    await asyncio.sleep(self._dice.uniform(0.0, 4.0))
                group.create_task(self._befalls(kind))

    async def _befalls(self, kind: str) -> None:
        with self._diary.event(kind) as span:
            await self._blows[kind](span)
            span.ended = time.time()
            await self.well(kind)

    def _victim(self) -> Replica:
        poller = self._fleet.poller
        if poller is not None and self._dice.random() < POLLER_SHARE:
            return poller
        return self._dice.choice(self._fleet.replicas)

    async def _kills(self, span: Span) -> None:
        victim = self._victim()
        span.note = victim.life.name
        victim.signal(signal.SIGKILL)

    async def _kills_all(self, span: Span) -> None:
        for replica in self._fleet.replicas:
            replica.signal(signal.SIGKILL)

    async def _freezes(self, span: Span) -> None:
        victim = self._victim()
        if victim.stands_still:
            span.note = "stood still already"
            return
        seconds = self._fleet.site.lease * self._dice.uniform(*self._weather.frozen)
        span.note = f"{victim.life.name} for {seconds:.0f} s"
        await victim.freeze(seconds)

    async def _restarts_database(self, span: Span, *, fast: bool) -> None:
        server, seconds = self._fleet.site.server, self._dice.uniform(*DOWN_SECONDS)
        span.note = f"down {seconds:.1f} s"
        async with self._database:
            await asyncio.to_thread(server.stop, fast=fast)
            await asyncio.sleep(seconds)
            await asyncio.to_thread(server.start)

    async def _cuts(self, span: Span) -> None:
        async with self._database:
            await self._fleet.site.server.execute(CUT_CONNECTIONS)

    async def _deploys(self, span: Span) -> None:
        async with self._releasing:
            span.note = _late(await self._fleet.release())

    async def _deploys_and_kills(self, span: Span) -> None:
        async with self._releasing, asyncio.TaskGroup() as group:
            deploy = group.create_task(self._fleet.release())
            await asyncio.sleep(self._dice.uniform(0.1, 3.0))
            victim = self._dice.choice([one for one in self._fleet.all if one.is_up])
            victim.signal(signal.SIGKILL)
        span.note = " ".join([victim.life.name, _late(deploy.result())]).strip()

    async def _starts_anew(self, span: Span) -> None:
        async with self._releasing:
            span.note = _late(await self._fleet.restart())


def _late(killed: int) -> str:
    return f"{killed} killed after their grace" if killed else ""
