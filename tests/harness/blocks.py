"""What the whole matrix consists of: a block is one scenario on one database; it runs none."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from tests.harness.kills import Cell, Form
from tests.harness.matrix import Result
from tests.harness.scenarios import SCENARIOS
from tests.harness.stage import Scenario

Database = Literal["sqlite", "postgresql"]
DATABASES: tuple[Database, ...] = ("sqlite", "postgresql")
FORMS: tuple[Form, ...] = ("two replicas", "one paused")
"""Of every scenario, on PostgreSQL, since SQLite has one process at a time."""
GRADES = ("sync", "async", "exit")
TRIES = 6
OTHER_TOWNS = ("slack", "discord")
"""On SQLite, and but for the scenarios whose clock runs fast: the messages of these platforms carry
real times, by which the service reads on."""
NOT_ELSEWHERE = {
    ("five parts", "slack"): "its answer is two messages there",
    ("five parts", "discord"): "its answer is a file there",
    ("a summary before the answer", "discord"): "its answer is two messages there",
}
FIRSTS = 2
"""From so many places of a scenario the recovery is killed as well."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """``first`` is which of ``FIRSTS`` kills comes before the counted ones; 0 for none, so that
    each cell has one kill."""

    scenario: str
    database: Database
    grade: str = "sync"
    first: int = 0
    town: str = "telegram"
    form: Form = "alone"

    def __str__(self) -> str:
        twice = f", second kill {self.first}" if self.first else ""
        town = f" in {self.town}" if self.town != "telegram" else ""
        form = f", {self.form}" if self.form != "alone" else ""
        return f"{self.scenario}{town} on {self.database}, {self.grade}{twice}{form}"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """``trouble`` is why the block could not be run: even without a kill there are complaints.
    ``run`` names the code and the cells that it was run with."""

    block: Block
    run: str = ""
    results: list[Result] = []
    trouble: str = ""

    @property
    def red(self) -> list[Result]:
        return [result for result in self.results if result.faults]


def scenario_of(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def all_blocks() -> list[Block]:
    """Second kills and grades on SQLite alone: what they prove is above the store. The longest
    first, so that no worker has to wait for one at the end."""
    found: list[Block] = []
    for database in DATABASES:
        for scenario in reversed(SCENARIOS):
            name = scenario.name
            found.append(Block(scenario=name, database=database))
            if database == "postgresql":
                continue
            if scenario.twice:
                found += [
                    Block(scenario=name, database=database, first=number)
                    for number in range(1, FIRSTS + 1)
                ]
            if scenario.lags:
                found += [
                    Block(scenario=name, database=database, grade=grade) for grade in GRADES[1:]
                ]
    found += [
        Block(scenario=scenario.name, database="sqlite", town=town)
        for town in OTHER_TOWNS
        for scenario in SCENARIOS
        if scenario.rate == 1.0 and not scenario.webhook
        if (scenario.name, town) not in NOT_ELSEWHERE
    ]
    found += [
        Block(scenario=scenario.name, database="postgresql", form=form)
        for form in FORMS
        for scenario in reversed(SCENARIOS)
    ]
    return found


def firsts_of(cells: Sequence[Cell], number: int) -> Sequence[Cell]:
    """Spread evenly over the scenario, so that they fall into different parts of it; the next ones
    are for a run that does not pass by the first."""
    place = len(cells) * number // (FIRSTS + 1)
    return cells[place : place + TRIES]
