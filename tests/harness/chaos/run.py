"""People talk through the stand-in with several replicas in a storm; then everything is counted.
It looks only from outside, and repairs nothing."""

import asyncio
import random
import time
from collections.abc import Sequence

import msgspec

from tests.harness.chaos.fleet import Fleet, Site
from tests.harness.chaos.gaps import Timing, timing
from tests.harness.chaos.screens import as_text
from tests.harness.chaos.storm import Storm, Weather
from tests.harness.chaos.watch import Diary, Span
from tests.harness.kills import doubts
from tests.harness.lab import Zygote
from tests.harness.soak.books import Books, audit
from tests.harness.soak.crowd import Person
from tests.harness.soak.ending import charges_of, settles, tidies, totals, unexpected, unsure
from tests.harness.soak.judge import Account, Evidence, judged
from tests.harness.soak.words import Words
from tests.standins.telegram_updates import Conflict

FIRST_ID = 1001
WAKING_SECONDS = 0.5
"""How long after it woke a process may hear of what happened to its poll while it stood still."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """``calm`` seconds without a storm come before it, and again behind it; ``tempo`` divides the
    people's pauses."""

    people: int = 40
    calm: float = 30.0
    weather: Weather = Weather()
    tempo: float = 1.0
    seed: int = 1


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """``explained`` are polls that were ended by another while their process stood still. ``calm``
    are the spans without a storm, ``began`` is Unix time."""

    plan: Plan
    site: Site
    began: float
    accounts: list[Account]
    books: Books
    faults: list[str]
    spans: list[Span]
    calm: list[Span]
    timing: Timing
    conflicts: list[Conflict]
    explained: int
    codes: list[int]
    model_calls: int
    charges: int
    unsure: int
    settled_in: float


async def chaos(zygote: Zygote, site: Site, plan: Plan) -> Outcome:
    fleet = Fleet(zygote, site)
    words = Words()
    fleet.model.respond = words
    people = [
        Person(
            fleet.telegram.user(FIRST_ID + number, f"P{number}"),
            number,
            random.Random(plan.seed * 1000 + number),
            plan.tempo,
        )
        for number in range(plan.people)
    ]
    async with fleet:
        run = _Run(fleet, people, plan)
        await run.goes()
        books = await audit(site.url, await fleet.logs())
        (site.folder / "screens").write_text(run.screens(), encoding="utf-8")
        return run.outcome(books, words)


class _Run:
    def __init__(self, fleet: Fleet, people: Sequence[Person], plan: Plan) -> None:
        self._fleet = fleet
        self._people = people
        self._plan = plan
        self._diary = Diary()
        self._storm = Storm(fleet, plan.weather, self._diary, random.Random(plan.seed))
        self._calm: list[Span] = []
        self._faults: list[str] = []
        self._settled_in = 0.0
        self._began = time.time()

    async def goes(self) -> None:
        tidy = asyncio.create_task(tidies(self._fleet))
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            await self._storm.well("the start")
            for person in self._people:
                group.create_task(person.lives(ended.is_set))
            await self._is_calm()
            await self._storm.rages()
            await self._is_calm()
            ended.set()
        self._settled_in, self._faults = await settles(self._fleet)
        tidy.cancel()
        await self._fleet.down()

    async def _is_calm(self) -> None:
        span = Span(kind="calm", began=time.time())
        await asyncio.sleep(self._plan.calm)
        span.ended = time.time()
        self._calm.append(span)

    def screens(self) -> str:
        touches = self._fleet.watch.touches
        return as_text(self._people, touches, self._diary.spans, self._began)

    def outcome(self, books: Books, words: Words) -> Outcome:
        fleet, conflicts = self._fleet, self._fleet.telegram.updates.conflicts
        charges = charges_of(fleet.effects)
        evidence = Evidence(books.outcomes, doubts(fleet.writes(), fleet.site.lease), charges)
        accounts = [judged(person, evidence) for person in self._people]
        blamed = [one for one in conflicts if not self._explains(one)]
        faults = [
            *self._faults,
            *self._storm.faults,
            *books.faults,
            *(fault for account in accounts for fault in account.faults),
            *words.mixed,
            *fleet.model.violations,
            *totals(accounts, books),
            *unexpected(fleet.codes),
            *(self._told(conflict) for conflict in blamed),
        ]
        return Outcome(
            plan=self._plan,
            site=fleet.site,
            began=self._began,
            accounts=accounts,
            books=books,
            faults=faults,
            spans=self._diary.spans,
            calm=self._calm,
            timing=timing(self._people, fleet.watch.touches),
            conflicts=conflicts,
            explained=len(conflicts) - len(blamed),
            codes=fleet.codes,
            model_calls=words.asked,
            charges=charges.total(),
            unsure=unsure(self._people),
            settled_in=self._settled_in,
        )

    def _explains(self, conflict: Conflict) -> bool:
        """The poll that was ended was that of a process that stood still: its connection stays
        open, and nobody reads from it."""
        lives = {life.name: life for life in self._fleet.lives}
        return lives[conflict.who].stood_still(conflict.at, WAKING_SECONDS)

    def _told(self, conflict: Conflict) -> str:
        at = conflict.at - self._began
        return f"at {at:.1f} s a poll of {conflict.who} was ended by one of {conflict.by}"
