"""People talk through the stand-ins while the service is killed again and again; then everything is
counted. It looks only from outside, and repairs nothing."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from tests.harness.kills import doubts
from tests.harness.lab import Lab, Place, Zygote
from tests.harness.soak.books import Books, audit
from tests.harness.soak.crowd import Person
from tests.harness.soak.ending import charges_of, settles, tidies, totals, unexpected, unsure
from tests.harness.soak.gauge import SAME_AGE, Change, Sample, sample, slopes, warm, watched
from tests.harness.soak.judge import Account, Evidence, judged
from tests.harness.soak.words import Words
from tests.standins.openai import COMPLETIONS

FIRST_ID = 1001
LOOK_SECONDS = 0.1
LONGEST = 4
"""Times as long as meant, on a machine that is too busy for so many kills."""
RSS_GROWTH = 12.0
"""MiB, between the first and the last quarter of the lives, each at the same age. What the model is
shown grows until it has reached its limits, and some thirty requests are under way at that age."""
FILES_GROWTH = 10
CALM_FILES_EACH = 1
"""Open connections are kept for those who talk at the same time."""
CALM_RSS_GROWTH = 16.0
"""MiB, in one life: sessions that stay open are kept in memory."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """``seconds`` with kills, longer if these are not so many as ``kills`` by then, and ``calm``
    seconds without. ``pause`` is how long a life lasts
    from when it was ready; ``tempo`` divides the people's pauses."""

    people: int = 30
    seconds: float = 600.0
    kills: int = 60
    calm: float = 100.0
    pause: tuple[float, float] = (2.0, 10.0)
    tempo: float = 1.0
    seed: int = 1


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """``young`` are the lives at the same age, ``calm`` is one life; sizes are in MiB."""

    plan: Plan
    accounts: list[Account]
    books: Books
    faults: list[str]
    kills: int
    stops: int
    drained: int
    lives: int
    model_calls: int
    charges: int
    unsure: int
    young: Change
    calm: Change
    slope: tuple[float, float]
    log_mib: float
    settled_in: float


class Killer:
    """``stops`` are SIGTERMs, ``drained`` those of them that a SIGKILL cut short."""

    def __init__(self, lab: Lab, plan: Plan) -> None:
        self._lab = lab
        self._plan = plan
        self._dice = random.Random(plan.seed)
        self.stops = 0
        self.drained = 0
        self.young: list[Sample] = []

    async def strikes(self) -> None:
        began = time.monotonic()
        while not self._enough(time.monotonic() - began):
            life = await self._ready()
            ends = time.monotonic() + self._dice.uniform(*self._plan.pause)
            await warm(self._lab, lambda end=ends: time.monotonic() + SAME_AGE >= end)
            if COMPLETIONS in self._lab.calls[life]:
                self.young += [one for one in (sample(self._lab),) if one is not None]
            await asyncio.sleep(max(0.0, ends - time.monotonic()))
            await self._ends(life)

    def _enough(self, passed: float) -> bool:
        kills, seconds = self._plan.kills, self._plan.seconds
        return passed >= seconds and (self._lab.died >= kills or passed >= seconds * LONGEST)

    async def _ends(self, life: int) -> None:
        """Most by SIGKILL, some by a deploy's SIGTERM, some of these in the middle of the drain."""
        how = self._dice.random()
        self._signal(signal.SIGKILL if how < 0.75 else signal.SIGTERM)
        self.stops += how >= 0.75
        if how >= 0.9:
            await asyncio.sleep(self._dice.uniform(0.05, 1.5))
            if self._lab.lives == life:
                self.drained += 1
                self._signal(signal.SIGKILL)
        while self._lab.lives == life:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    async def _ready(self) -> int:
        while (await self._lab.readiness())[0] != 200:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        return self._lab.lives

    def _signal(self, number: signal.Signals) -> None:
        if self._lab.pid:
            with suppress(ProcessLookupError):
                os.kill(self._lab.pid, number)


async def soak(zygote: Zygote, place: Place, plan: Plan) -> Outcome:
    lab = Lab(zygote, place)
    words = Words()
    lab.model.respond = words
    people = [
        Person(
            lab.telegram.user(FIRST_ID + number, f"P{number}"),
            number,
            random.Random(plan.seed * 1000 + number),
            plan.tempo,
        )
        for number in range(plan.people)
    ]
    async with lab:
        run = _Run(lab, people, plan)
        await run.goes()
        books = await audit(place.database, await lab.logs())
        return run.outcome(books, words)


class _Run:
    def __init__(self, lab: Lab, people: Sequence[Person], plan: Plan) -> None:
        self._lab = lab
        self._people = people
        self._plan = plan
        self._killer = Killer(lab, plan)
        self._calm: list[Sample] = []
        self._faults: list[str] = []
        self._settled_in = 0.0

    async def goes(self) -> None:
        tidy = asyncio.create_task(tidies(self._lab))
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for person in self._people:
                group.create_task(person.lives(ended.is_set))
            await self._killer.strikes()
            await self._is_calm()
            ended.set()
        self._settled_in, self._faults = await settles(self._lab)
        tidy.cancel()
        await self._lab.down()

    async def _is_calm(self) -> None:
        ends = time.monotonic() + self._plan.calm
        every = min(1.0, self._plan.calm / 20)
        self._calm = await watched(self._lab, lambda: time.monotonic() >= ends, every)

    def outcome(self, books: Books, words: Words) -> Outcome:
        lab, killer = self._lab, self._killer
        charges = charges_of(lab.effects)
        evidence = Evidence(books.outcomes, doubts(lab.writes()), charges)
        accounts = [judged(person, evidence) for person in self._people]
        young, calm = Change.of(killer.young), Change.of(self._calm)
        faults = [
            *self._faults,
            *books.faults,
            *(fault for account in accounts for fault in account.faults),
            *words.mixed,
            *lab.model.violations,
            *totals(accounts, books),
            *([f"only {lab.died} kills"] if lab.died < self._plan.kills else []),
            *_growth(young, calm, len(self._people)),
            *unexpected(lab.codes),
        ]
        return Outcome(
            plan=self._plan,
            accounts=accounts,
            books=books,
            faults=faults,
            kills=lab.died,
            stops=killer.stops,
            drained=killer.drained,
            lives=lab.lives,
            model_calls=words.asked,
            charges=charges.total(),
            unsure=unsure(self._people),
            young=young,
            calm=calm,
            slope=slopes(self._calm),
            log_mib=len(lab.log()) / 2**20,
            settled_in=self._settled_in,
        )


def _growth(young: Change, calm: Change, people: int) -> list[str]:
    limits = (
        ("young", young, RSS_GROWTH, FILES_GROWTH),
        ("calm", calm, CALM_RSS_GROWTH, people * CALM_FILES_EACH),
    )
    found: list[str] = []
    for what, change, rss, files in limits:
        more, open_ = change.rss[1] - change.rss[0], change.files[1] - change.files[0]
        found += [f"the {what} life has {more:.1f} MiB more in the end"] * (more > rss)
        found += [f"the {what} life has {open_:.0f} files more open"] * (open_ > files)
    return found
