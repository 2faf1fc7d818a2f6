"""Who of several processes takes each platform's messages: one at a time, by the bot's token's
lease; it takes none itself."""

import asyncio
from collections.abc import Mapping

import structlog
from msgspec.structs import replace

from bots.platforms import Adapter, Health
from core.errors import StorageError
from core.ports import UNWATCHED, Clock, Leases, Telemetry
from core.runtime.holder import Holder
from core.runtime.retrying import Seldom

LOOK_SECONDS = 0.5
"""How often one that stands by looks whether the lease is free; it is told too, as a rule."""
HELD_SHARE = 0.8
"""Of its lease that one goes on without having renewed it, when the database is away."""

STANDING_BY = "another process takes its messages; this one stands by"
ONLY_SENDS = "this process takes no messages, and only sends"

log = structlog.get_logger(__name__)


class Intakes:
    """``takes`` is False in a process that leaves all intake to others."""

    def __init__(  # noqa: PLR0913 (all of it from outside)
        self,
        adapters: Mapping[str, Adapter],
        leases: Leases,
        clock: Clock,
        holder: Holder,
        *,
        takes: bool = True,
        telemetry: Telemetry = UNWATCHED,
    ) -> None:
        self._adapters = adapters
        self._leases = leases
        self._clock = clock
        self._holder = holder
        self._takes = takes
        self._telemetry = telemetry
        self._seldom = Seldom(clock)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._taking: set[str] = set()
        """Platforms whose messages are taken here."""
        self._nudged = asyncio.Event()

    async def start(self) -> None:
        """Returns when the messages of each platform are taken here, or by another process. Raises
        what an adapter raises."""
        if not self._takes:
            return
        settled: list[asyncio.Event] = []
        for name, adapter in self._adapters.items():
            if adapter.intake:
                first = asyncio.Event()
                keeping = asyncio.create_task(self._keep(name, adapter, first))
                self._tasks[name] = keeping
                settled.append(first)
            else:
                await self._begin(name, adapter)
        await asyncio.gather(*(first.wait() for first in settled))
        for task in self._tasks.values():
            if task.done():
                task.result()

    async def stop(self) -> None:
        """Who stands by takes over at once."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        for name in tuple(self._taking):
            await self._end(name, self._adapters[name])

    def nudge(self) -> None:
        """A lease may be free."""
        self._nudged.set()

    def stands_by(self, name: str) -> bool:
        """Whether the platform's messages are left to another process."""
        return not self._takes or (name in self._tasks and name not in self._taking)

    def health(self) -> dict[str, Health]:
        """As the adapters say, and well where it is another process that takes the messages."""
        return {name: self._health(name, adapter) for name, adapter in self._adapters.items()}

    def _health(self, name: str, adapter: Adapter) -> Health:
        health = adapter.health()
        if not self._takes:
            return replace(health, ok=True, detail=ONLY_SENDS)
        if self.stands_by(name):
            return replace(health, ok=True, detail=STANDING_BY)
        return health

    async def _keep(self, name: str, adapter: Adapter, first: asyncio.Event) -> None:
        """Until it is cancelled: waits for the lease, takes messages while it has it, again."""
        try:
            while True:
                if await self._has(adapter.intake):
                    await self._take_messages_or_fail(name, adapter, first)
                    await self._let_go(name, adapter)
                elif not first.is_set():
                    log.info("another process takes the messages; standing by", platform=name)
                first.set()
                await self._rest(LOOK_SECONDS)
        finally:
            first.set()
            # Also what is granted only now, since it was being asked for.
            await self._let_go(name, adapter)

    async def _take_messages_or_fail(
        self, name: str, adapter: Adapter, first: asyncio.Event
    ) -> None:
        """Raises what fails at the start; later it is begun again."""
        try:
            await self._take_messages(name, adapter, first)
        except Exception:
            if not first.is_set():
                raise
            log.exception("intake broke off", platform=name)

    async def _take_messages(self, name: str, adapter: Adapter, first: asyncio.Event) -> None:
        """Until the lease is lost, or it is cancelled."""
        try:
            await self._begin(name, adapter)
            first.set()
            await self._hold(adapter.intake)
            log.warning("lease lost; another process may take the messages", platform=name)
            self._telemetry.count("lease_loss", name)
        finally:
            await self._end(name, adapter)

    async def _let_go(self, name: str, adapter: Adapter) -> None:
        try:
            async with asyncio.timeout(self._holder.seconds / 3):
                await self._leases.release(adapter.intake, self._holder.owner)
        except (StorageError, TimeoutError) as error:
            log.warning("lease not let go; it runs out", platform=name, error=str(error))

    async def _hold(self, lease: str) -> None:
        """Renews it; returns when it is another's, or may soon be."""
        loop = asyncio.get_running_loop()
        sure = self._holder.seconds * HELD_SHARE
        until = loop.time() + sure
        while (left := until - loop.time()) > 0:
            await self._clock.sleep(min(left, self._holder.seconds / 3))
            asked = loop.time()
            try:
                async with asyncio.timeout_at(until):
                    if not await self._take(lease):
                        return
                until = asked + sure
            except StorageError as error:
                self._seldom.warn("lease not renewed", error)
            except TimeoutError:
                return

    async def _has(self, lease: str) -> bool:
        try:
            return await self._take(lease)
        except StorageError as error:
            self._seldom.warn("lease not asked for", error)
            return False

    async def _take(self, lease: str) -> bool:
        now = self._clock.now()
        return await self._leases.take_lease(lease, self._holder.lease(now), now)

    async def _rest(self, seconds: float) -> None:
        self._nudged.clear()
        sleeping = asyncio.create_task(self._clock.sleep(seconds))
        nudged = asyncio.create_task(self._nudged.wait())
        try:
            await asyncio.wait((sleeping, nudged), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            nudged.cancel()
            await asyncio.gather(sleeping, nudged, return_exceptions=True)

    async def _begin(self, name: str, adapter: Adapter) -> None:
        self._taking.add(name)
        await adapter.start()

    async def _end(self, name: str, adapter: Adapter) -> None:
        self._taking.discard(name)
        await adapter.stop()
