"""Sums of what models cost, added to in the transaction that spends; it never counts the log."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, cast

import sqlalchemy as sa

from core.domain.messages import Usage
from core.domain.spending import MarkKind, Meter, Spent
from storage.engine import DialectName, insert
from storage.ledger import shard_of
from storage.rows import NANO, Prepared, Row
from storage.tables import spending, spending_marks, spending_sums

COUNTS: tuple[str, ...] = ("prompt", "completion", "cached", "nanodollars")
IN_ALL = 0
"""The day that stands for all of them."""
_Key = tuple[int, str, str | int]

_OF_DAY = spending.c.day == sa.bindparam("day")
_OF_PERSON = sa.and_(
    spending.c.platform == sa.bindparam("platform"), spending.c.person == sa.bindparam("person")
)
_PERSON = sa.select(*(spending.c[name] for name in COUNTS)).where(_OF_DAY, _OF_PERSON)
_SUMS = sa.select(spending_sums.c.platform, *(spending_sums.c[name] for name in COUNTS)).where(
    spending_sums.c.day == sa.bindparam("day")
)
_MARKS = sa.select(spending_marks.c.what).where(
    spending_marks.c.day == sa.bindparam("day"),
    sa.or_(
        sa.and_(
            spending_marks.c.platform == sa.bindparam("platform"),
            spending_marks.c.person == sa.bindparam("person"),
        ),
        sa.and_(spending_marks.c.platform == "", spending_marks.c.person == ""),
    ),
)
_DAYS = sa.select(*(spending.c[name] for name in COUNTS)).where(
    spending.c.day.in_(sa.bindparam("days", expanding=True)), _OF_PERSON
)
_MOST = (
    sa.select(spending.c.platform, spending.c.person, *(spending.c[name] for name in COUNTS))
    .where(_OF_DAY)
    .order_by(
        spending.c.nanodollars.desc(),
        (spending.c.prompt + spending.c.completion).desc(),
        spending.c.platform,
        spending.c.person,
    )
    .limit(sa.bindparam("up_to"))
)


class Bills:
    """Built once: what is the same in every transaction is made beforehand."""

    def __init__(self, dialect: DialectName) -> None:
        self._spend = _adding(dialect, spending)
        self._sum = _adding(dialect, spending_sums)
        self._mark = insert(dialect, spending_marks).on_conflict_do_nothing()

    def write(self, connection: sa.Connection, stored: Sequence[Prepared]) -> None:
        if marks := [row for one in stored for row in one.marks]:
            connection.execute(self._mark, sorted(marks, key=_place))
        if persons := rows_of(persons_of(stored), "person"):
            connection.execute(self._spend, persons)
            connection.execute(self._sum, rows_of(sums_of(stored), "shard"))


def persons_of(stored: Iterable[Prepared]) -> Mapping[_Key, Counter[str]]:
    found: defaultdict[_Key, Counter[str]] = defaultdict(Counter)
    for row in (row for one in stored for row in one.spent):
        add(found[row["day"], row["platform"], row["person"]], row)
    return found


def sums_of(stored: Iterable[Prepared]) -> Mapping[_Key, Counter[str]]:
    found: defaultdict[_Key, Counter[str]] = defaultdict(Counter)
    for one in stored:
        shard = shard_of(one.commit.key)
        for row in one.spent:
            add(found[row["day"], row["platform"], shard], row)
            add(found[IN_ALL, row["platform"], shard], row)
    return found


def rows_of(found: Mapping[_Key, Counter[str]], third: str) -> list[Row]:
    """In one order in every process, so that two of them cannot wait for each other."""
    return [
        {"day": day, "platform": platform, third: last, **{name: counts[name] for name in COUNTS}}
        for (day, platform, last), counts in sorted(found.items(), key=lambda item: item[0])
    ]


def add(counts: Counter[str], row: Row) -> None:
    counts.update({name: row[name] for name in COUNTS})


def _place(row: Row) -> tuple[int, str, str, str]:
    return row["day"], row["platform"], row["person"], row["what"]


def _adding(dialect: DialectName, table: sa.Table) -> sa.Insert:
    statement = insert(dialect, table)
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key),
        set_={name: table.c[name] + statement.excluded[name] for name in COUNTS},
    )


def usage_of(counts: Mapping[str, int]) -> Usage:
    return Usage(
        prompt=counts["prompt"],
        completion=counts["completion"],
        cost=counts["nanodollars"] / NANO,
        cached=counts["cached"],
    )


def total(rows: Iterable[Mapping[str, Any]]) -> Usage:
    """Added up in whole numbers."""
    counts = Counter(dict.fromkeys(COUNTS, 0))
    for row in rows:
        counts.update({name: row[name] for name in COUNTS})
    return usage_of(counts)


def by_platform(rows: Iterable[Mapping[str, Any]]) -> dict[str, Usage]:
    found: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["platform"]].append(row)
    return {platform: total(of) for platform, of in sorted(found.items())}


def days_between(first: date, last: date) -> list[int]:
    return list(range(first.toordinal(), last.toordinal() + 1))


def _rows(connection: sa.Connection, query: sa.Select[Any], asked: Row) -> list[Row]:
    return [dict(row) for row in connection.execute(query, asked).mappings()]


def meter(connection: sa.Connection, day: date, platform: str, person: str) -> Meter:
    asked = {"day": day.toordinal(), "platform": platform, "person": person}
    marks = connection.execute(_MARKS, asked).scalars()
    return Meter(
        day=day,
        person=total(_rows(connection, _PERSON, asked)),
        service=total(_rows(connection, _SUMS, {"day": asked["day"]})),
        marks=frozenset(cast("Iterable[MarkKind]", marks)),
    )


def spent(connection: sa.Connection, platform: str, person: str, first: date, last: date) -> Usage:
    asked = {"days": days_between(first, last), "platform": platform, "person": person}
    return total(_rows(connection, _DAYS, asked))


def most(connection: sa.Connection, day: date, limit: int) -> tuple[Spent, ...]:
    rows = _rows(connection, _MOST, {"day": day.toordinal(), "up_to": limit})
    return tuple(Spent(day, row["platform"], row["person"], usage_of(row)) for row in rows)


def in_all(connection: sa.Connection) -> dict[str, Usage]:
    return by_platform(_rows(connection, _SUMS, {"day": IN_ALL}))
