"""docs/kill-matrix.md, written from what a run found; it runs nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from tests.harness.blocks import DATABASES, FIRSTS, FORMS, GRADES, Outcome, scenario_of
from tests.harness.faults import FaultResult
from tests.harness.kills import Cell

Part = Literal["kills", "faults", "bugs"]
PARTS: tuple[Part, ...] = ("kills", "faults", "bugs")
ENDS = ("answered", "said to have failed", "doubled", "red")
HOME = "telegram"
SHOWN = 3
"""Cells named for each planted bug."""
HEAD = """# The kill matrix

Written by `make matrix`; do not edit.

A scenario is run once to count its writes to the database and its calls to the outside (the
platform, the model). Then it is run again for each of them, with SIGKILL just before it and just
after; the service is started anew, as a supervisor does, and runs until it is quiet. What is
checked is what its user sees on her screen, what the tool did (a file of its own), what the service
counts (`accepted = answered + failed + discarded + pending`) and what `stillhere sessions` shows:
each message is answered once or spoken of, nothing comes out of nowhere, no effect is repeated, no
request is illegal, no turn stays open, and what a crash did is recorded before any message is
taken.

One thing cannot be exact: Telegram cannot be asked whether a *new* message arrived. A process that
dies between the claim of such a message and the note that it is out sends it again: **at most one
double**, and nothing else may double. The cells where that may happen are counted apart; in the
last column is in how many of them it did. Telegram is where all of this is played; Slack and
Discord, which can be asked, have a table of their own.
"""


PAIRS = """\
Two processes share the database, on PostgreSQL, and the bot's token. **Two replicas**: the one that
does a write or a call is killed just before or just after it, and is started again only when the
other has done all that was left to do. **One paused**: it is not killed but stands still (SIGSTOP),
past its lease and until the other has done everything; then it wakes (SIGCONT), and must neither
write nor call anything. Each process has its own count, and the cells are those of both; what
the second has to do varies from run to run, so that some cells are not reached. In no cell may
both of them poll Telegram."""


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """``minutes`` is how long the part of the run took."""

    commit: str
    date: str
    machine: str
    minutes: float

    def __str__(self) -> str:
        return f"Commit {self.commit}, {self.date}, {self.machine}, {self.minutes:.0f} minutes"


class Caught(msgspec.Struct, frozen=True, kw_only=True):
    """A planted bug, and the cells of its scenario that noticed it; ``at_once`` where the run
    without a kill of ours did, by the complaint that was expected."""

    name: str
    scenario: str
    cells: int
    red: list[Cell]
    at_once: bool = False


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found, and by which run each part of it."""

    where: dict[Part, Where] = {}
    outcomes: list[Outcome] = []
    faults: list[FaultResult] = []
    caught: list[Caught] = []

    @property
    def red(self) -> int:
        blocks = sum(len(outcome.red) + bool(outcome.trouble) for outcome in self.outcomes)
        return blocks + sum(bool(result.faults) for result in self.faults)

    @property
    def cells(self) -> int:
        return sum(len(outcome.results) for outcome in self.outcomes) + len(self.faults)

    @property
    def missed(self) -> list[str]:
        return [bug.name for bug in self.caught if not bug.red and not bug.at_once]


def page(found: Found) -> str:
    pairs = [outcome for outcome in found.outcomes if outcome.block.form != "alone"]
    alone = [outcome for outcome in found.outcomes if outcome.block.form == "alone"]
    home = [outcome for outcome in alone if outcome.block.town == HOME]
    abroad = [outcome for outcome in found.outcomes if outcome.block.town != HOME]
    sections = [HEAD, _where(found)]
    if "kills" in found.where:
        sections += [_scenarios(home), _pairs(pairs), _platforms(abroad)]
        sections += [_twice(home), _grades(home)]
    if "faults" in found.where:
        sections.append(_faults(found.faults))
    if "bugs" in found.where:
        sections.append(_bugs(found.caught))
    return "\n".join(sections).rstrip() + "\n"


def _where(found: Found) -> str:
    total = (
        f"**{found.cells:,} cells, {found.red} red; {len(found.caught)} planted bugs, "
        f"{len(found.missed)} missed.**\n\n"
    )
    lines = [f"- {part}: {found.where.get(part, 'not run')}.\n" for part in PARTS]
    runs = Counter(outcome.run for outcome in found.outcomes)
    lines += [f"- {count} blocks of kills on commit {run}.\n" for run, count in runs.items()]
    return total + "".join(lines)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines) + "\n"


def _numbers(found: Sequence[Outcome]) -> list[object]:
    results = [result for outcome in found for result in outcome.results]
    doubtful = [result for result in results if result.may_double]
    return [
        len(results),
        sum(result.killed > 0 for result in results),
        len(results) - len(doubtful) - sum(bool(r.faults) for r in results if not r.may_double),
        len(doubtful),
        sum(result.doubled for result in doubtful),
        sum(len(outcome.red) + bool(outcome.trouble) for outcome in found),
    ]


COLUMNS = ("cells", "killed", "exact", "at most one double", "doubled", "red")


def _scenarios(outcomes: Sequence[Outcome]) -> str:
    plain = [o for o in outcomes if not o.block.first and o.block.grade == "sync"]
    return _by_scenario("One kill", "Every write and every call, before and after.", plain)


def _pairs(outcomes: Sequence[Outcome]) -> str:
    groups: defaultdict[str, dict[str, Outcome]] = defaultdict(dict)
    for outcome in outcomes:
        groups[outcome.block.scenario][outcome.block.form] = outcome
    rows: list[list[object]] = []
    for name in sorted(groups):
        found = [[groups[name][form]] if form in groups[name] else [] for form in FORMS]
        rows.append([name, *(n for some in found for n in _of_form(some))])
    totals = [_of_form([o for o in outcomes if o.block.form == form]) for form in FORMS]
    rows.append(["**all**", *(f"**{n}**" for total in totals for n in total)])
    numbers = ("cells", "struck", "at most one double", "doubled", "red")
    head = ("scenario", *(f"{form}: {what}" for form in FORMS for what in numbers))
    return f"## Two replicas\n\n{PAIRS}\n\n{table(head, rows)}"


def _of_form(outcomes: Sequence[Outcome]) -> list[object]:
    cells, struck, _, *rest = _numbers(outcomes)
    return [cells, struck, *rest]


def _platforms(outcomes: Sequence[Outcome]) -> str:
    """Who is asked what arrived doubles nothing: no cell may."""
    groups: defaultdict[str, dict[str, Outcome]] = defaultdict(dict)
    for outcome in outcomes:
        groups[outcome.block.scenario][outcome.block.town] = outcome
    towns = sorted({outcome.block.town for outcome in outcomes})
    numbers = ("cells", "at most one double", "red")
    rows: list[list[object]] = [
        [name, *(n for town in towns for n in _short([groups[name].get(town)]))]
        for name in sorted(groups)
    ]
    totals = [_short([o for o in outcomes if o.block.town == town]) for town in towns]
    rows.append(["**all**", *(f"**{n}**" for total in totals for n in total)])
    head = ("scenario", *(f"{town.title()}: {what}" for town in towns for what in numbers))
    return (
        "## Slack and Discord\n\nOne kill, on SQLite. Both can be asked whether a message arrived; "
        "so none may double in any cell.\n\n" + table(head, rows)
    )


def _short(outcomes: Sequence[Outcome | None]) -> tuple[object, object, object]:
    known = [outcome for outcome in outcomes if outcome is not None]
    if not known:
        return "–", "–", "–"
    results = [result for outcome in known for result in outcome.results]
    red = sum(len(outcome.red) for outcome in known)
    return len(results), sum(result.may_double for result in results), red


def _twice(outcomes: Sequence[Outcome]) -> str:
    twice = [outcome for outcome in outcomes if outcome.block.first]
    text = (
        f"After a first kill, in {FIRSTS} places of the scenario, the start that recovers from it "
        "is killed in each of its own writes and calls; on SQLite."
    )
    return _by_scenario("A second kill inside recovery", text, twice)


def _by_scenario(title: str, text: str, outcomes: Sequence[Outcome]) -> str:
    groups: defaultdict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.block.scenario, outcome.block.database].append(outcome)
    rows: list[list[object]] = [
        [f"{name}: {scenario_of(name).about}", database, *_numbers(groups[name, database])]
        for name, database in sorted(groups, key=lambda place: (DATABASES.index(place[1]), place))  # pyright: ignore[reportArgumentType]
    ]
    rows.append(["**all**", "", *(f"**{n}**" for n in _numbers(outcomes))])
    return f"## {title}\n\n{text}\n\n{table(('scenario', 'database', *COLUMNS), rows)}"


def _grades(outcomes: Sequence[Outcome]) -> str:
    lagging = {outcome.block.scenario for outcome in outcomes if outcome.block.grade != "sync"}
    chosen = [
        outcome
        for outcome in outcomes
        if outcome.block.scenario in lagging
        and not outcome.block.first
        and outcome.block.database == "sqlite"
    ]
    rows: list[list[object]] = []
    for grade in GRADES:
        found = [outcome for outcome in chosen if outcome.block.grade == grade]
        again = sum(_asked_again(chosen, outcome) for outcome in found)
        looked = sum(result.looked > 1 for outcome in found for result in outcome.results)
        rows.append([f"`{grade}`", *_numbers(found), again, looked])
    text = (
        "The scenarios in which something may be written later, under each grade, on SQLite: "
        f"{', '.join(sorted(lagging))}. The promises hold in all of them; what a grade may cost is "
        "work done again: the model asked once more, a read-only tool run once more."
    )
    head = ("DURABILITY", *COLUMNS, "model asked again", "read-only tool ran again")
    return f"## The durability grades\n\n{text}\n\n{table(head, rows)}"


def _asked_again(outcomes: Sequence[Outcome], like: Outcome) -> int:
    """In how many cells the model was asked more often than the scenario needs."""
    same = [o for o in outcomes if o.block.scenario == like.block.scenario]
    least = min((result.asked for outcome in same for result in outcome.results), default=0)
    return sum(result.asked > least for result in like.results)


def _faults(results: Sequence[FaultResult]) -> str:
    text = (
        "One thing around the living service goes wrong once: an outside call, at each place of "
        "the scenario, or the database, at each write. The service is not started again. Its user "
        "gets an answer or is told of the failure, her next message is answered, the books add up, "
        "and `/readyz` says what is wrong while it is, and is well again afterwards."
    )
    rows: list[list[object]] = []
    for name in dict.fromkeys((result.scenario, result.fault) for result in results):
        ends = Counter(r.outcome for r in results if (r.scenario, r.fault) == name)
        rows.append([f"{name[1]} ({name[0]})", ends.total(), *(ends[end] for end in ENDS)])
    ends = Counter(result.outcome for result in results)
    rows.append(["**all**", ends.total(), *(ends[end] for end in ENDS)])
    return f"## Faults beside kills\n\n{text}\n\n{table(('fault', 'cells', *ENDS), rows)}"


def _bugs(caught: Sequence[Caught]) -> str:
    text = (
        "Each of these mistakes is planted in a copy of the code and its scenario run over all "
        "cells, on SQLite or, with two replicas, on PostgreSQL. A matrix that stayed green would "
        "prove nothing."
    )
    rows = [[bug.name, bug.scenario, bug.cells, len(bug.red), _caught_by(bug)] for bug in caught]
    head = ("planted bug", "scenario", "cells", "red", "caught by, for example")
    return f"## Planted bugs\n\n{text}\n\n{table(head, rows)}"


def _caught_by(bug: Caught) -> str:
    if bug.at_once:
        return "the scenario itself, before any kill of ours"
    return "; ".join(map(str, bug.red[:SHOWN]))
