"""Several replicas of the service on one database, with the stand-ins they talk to."""

import asyncio
import time
from pathlib import Path

import msgspec

from core.domain.events import Recorded
from storage.store import SqlStore
from tests.harness.chaos.replica import Life, Replica
from tests.harness.chaos.watch import Watch
from tests.harness.child import Birth
from tests.harness.kills import Write
from tests.harness.lab import Zygote
from tests.harness.reader import Reader
from tests.harness.surroundings import effects_in, surroundings
from tests.postgres import PostgresServer
from tests.standins.openai import OpenAIStandIn
from tests.standins.telegram import TelegramStandIn

GRACE = 30.0
"""Seconds between SIGTERM and SIGKILL on Heroku and Render."""
LOOK_SECONDS = 0.05


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """``url`` is a database of ``server`` that has its tables. ``roles`` are given to the replicas
    in turn; ``lease`` is in seconds."""

    folder: Path
    server: PostgresServer
    url: str
    roles: tuple[str, ...] = ("all", "all")
    lease: float = 15.0
    drain: float = 20.0
    environment: dict[str, str] = {}


class Fleet:
    """``replicas`` are those that are to be up, one for each role of the site."""

    def __init__(self, zygote: Zygote, site: Site) -> None:
        self.site = site
        self.telegram = TelegramStandIn()
        self.model = OpenAIStandIn()
        self.watch = Watch()
        self.replicas: list[Replica] = []
        self.all: list[Replica] = []
        self._zygote = zygote
        self._reader = Reader(site.url)
        self._released = 0

    async def __aenter__(self) -> "Fleet":
        self.telegram.start()
        self.model.start()
        self.telegram.after = self.watch
        self.replicas = [await self._start(role) for role in self.site.roles]
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(replica.dies() for replica in self.all if replica.is_up))
        await self._reader.close()
        await asyncio.gather(
            asyncio.to_thread(self.telegram.stop), asyncio.to_thread(self.model.stop)
        )

    async def release(self) -> int:
        """A rolling deploy: for each replica a new one is started, and once it is healthy the old
        one has to go. How many had to be killed for that."""
        killed = 0
        self._released += 1
        for place, old in enumerate(tuple(self.replicas)):
            new = await self._start(self.site.roles[place])
            self.replicas[place] = new
            await self._healthy(new)
            killed += await old.leaves(GRACE)
        return killed

    async def restart(self) -> int:
        """As Heroku does it: all new ones are started as the old ones are told to go."""
        self._released += 1
        old, self.replicas = self.replicas, []
        leaving = [asyncio.create_task(one.leaves(GRACE)) for one in old]
        self.replicas = [await self._start(role) for role in self.site.roles]
        return sum(await asyncio.gather(*leaving))

    async def down(self) -> None:
        """A clean stop of all."""
        await asyncio.gather(*(replica.leaves(GRACE) for replica in self.replicas))

    async def is_well(self, newest: int) -> bool:
        """Each is healthy, one of them hears the platform, and all up to the ``newest`` update is
        taken."""
        codes = await asyncio.gather(
            *(one.code_of(path) for one in self.replicas for path in ("/healthz", "/readyz"))
        )
        well = all(code == 200 for code in codes[::2]) and 200 in codes[1::2]
        return well and min(self.telegram.updates.pending, default=newest + 1) > newest

    @property
    def lives(self) -> list[Life]:
        return [life for replica in self.all for life in replica.lives]

    @property
    def codes(self) -> list[int]:
        return [life.code for life in self.lives if life.code is not None]

    def writes(self) -> dict[int, list[Write]]:
        """Of each life, in order."""
        return dict(enumerate(_written(life.trace) for life in self.lives))

    @property
    def poller(self) -> Replica | None:
        """Who polled last, if it is to be up."""
        name = self.telegram.updates.poller
        return next((one for one in self.replicas if name == one.life.name), None)

    @property
    def effects(self) -> list[str]:
        return effects_in(self.site.folder)

    async def store(self) -> SqlStore:
        return await self._reader.store()

    async def logs(self) -> dict[str, tuple[Recorded, ...]]:
        return await self._reader.logs()

    async def settled(self, patience: float) -> None:
        """Until nobody waits for anything."""
        async with asyncio.timeout(patience):
            while self.telegram.updates.pending or not await self._reader.nobody_waits():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)

    async def _healthy(self, new: Replica) -> None:
        """As a host's check of a new release sees it; one that is killed meanwhile comes again."""
        deadline = time.monotonic() + GRACE
        while await new.code_of("/readyz") != 200:
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _start(self, role: str) -> Replica:
        number = len(self.all) + 1
        replica = Replica(f"r{number}", self._zygote, lambda life: self._birth(life, role))
        self.all.append(replica)
        await replica.up()
        return replica

    def _birth(self, life: str, role: str) -> Birth:
        site = self.site
        return Birth(
            environment={
                **surroundings(site.folder, site.url, self.model.url),
                "PORT": "0",
                "ROLE": role,
                "DRAIN_SECONDS": str(int(site.drain)),
                "TELEGRAM_BOT_TOKEN": self.telegram.token,
                "TELEGRAM_API_URL": self.telegram.url_for(life),
                "PTB_TIMEDELTA": "true",
                **site.environment,
            },
            log=str(site.folder / f"{life}.log"),
            trace=str(site.folder / f"{life}.trace"),
            lease=site.lease,
        )


def _written(trace: Path) -> list[Write]:
    lines = trace.read_text(encoding="utf-8").splitlines() if trace.exists() else []
    return [msgspec.json.decode(line, type=Write) for line in lines]
