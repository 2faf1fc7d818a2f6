"""What models cost, for the store without a disk; the same sums as in a database, never fewer."""

from collections import Counter, defaultdict
from datetime import date

from core.domain.messages import Usage
from core.domain.spending import Meter, Spent
from storage.rows import Prepared, Row
from storage.spending import (
    COUNTS,
    IN_ALL,
    add,
    by_platform,
    days_between,
    persons_of,
    rows_of,
    sums_of,
    total,
    usage_of,
)


class SpendingInMemory:
    def __init__(self) -> None:
        self._persons: defaultdict[tuple[int, str, str], Counter[str]] = defaultdict(Counter)
        self._sums: defaultdict[tuple[int, str, int], Counter[str]] = defaultdict(Counter)
        self._marks: list[Row] = []

    def add(self, prepared: Prepared) -> None:
        for row in rows_of(persons_of((prepared,)), "person"):
            add(self._persons[row["day"], row["platform"], row["person"]], row)
        for row in rows_of(sums_of((prepared,)), "shard"):
            add(self._sums[row["day"], row["platform"], row["shard"]], row)
        self._marks += (row for row in prepared.marks if row not in self._marks)

    def meter(self, day: date, platform: str, person: str) -> Meter:
        number, whose = day.toordinal(), ((platform, person), ("", ""))
        return Meter(
            day=day,
            person=self.spent(platform, person, day, day),
            service=total(counts for key, counts in self._sums.items() if key[0] == number),
            marks=frozenset(
                row["what"]
                for row in self._marks
                if row["day"] == number and (row["platform"], row["person"]) in whose
            ),
        )

    def spent(self, platform: str, person: str, first: date, last: date) -> Usage:
        days = days_between(first, last)
        return total(self._persons[day, platform, person] for day in days)

    def most(self, day: date, limit: int) -> tuple[Spent, ...]:
        found = [
            Spent(day, platform, person, usage_of(counts))
            for (number, platform, person), counts in sorted(self._persons.items())
            if number == day.toordinal() and counts
        ]
        found.sort(key=lambda one: (one.usage.cost, one.usage.total), reverse=True)
        return tuple(found[:limit])

    def in_all(self) -> dict[str, Usage]:
        return by_platform(
            {"platform": platform, **{name: counts[name] for name in COUNTS}}
            for (day, platform, _), counts in self._sums.items()
            if day == IN_ALL
        )
