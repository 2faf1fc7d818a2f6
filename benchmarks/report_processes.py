"""Measurements of several processes as lines with their aims; it measures nothing."""

from collections.abc import Sequence

from benchmarks.replicas import Rate, Rates, Replicas
from benchmarks.report import Line
from benchmarks.rest import Rest
from benchmarks.wakeups import Wakeups

REPLICAS_BEGIN, REPLICAS_END = (
    "<!-- replicas measured: begin -->",
    "<!-- replicas measured: end -->",
)
WAKEUPS_BEGIN, WAKEUPS_END = (
    "<!-- wake-ups measured: begin -->",
    "<!-- wake-ups measured: end -->",
)
AIMED_AT = (8, 16)
"""MAX_TURNS at which two are to do 1.8 times as much as one; above that the platform's pace and the
machine's cores may be less than the turns that are allowed."""
LEAST_RATIO = 1.8
MOST_WAIT = 0.05
SHOWN = 12


def replica_lines(found: Replicas) -> list[Line]:
    one, two = found.rest
    return [
        *(line for most, rates in found.rates.items() for line in _rates(most, rates)),
        *_rest("one process", one),
        *_rest("two processes", two),
        *(Line(f"… of two: `{what}`", f"{a_minute:.0f}") for what, a_minute in _most(two)),
    ]


def _rates(most: int, found: Rates) -> list[Line]:
    one, two = found.one, found.two
    ratio = two.turns / one.turns if one.turns else 0.0
    aimed = most in AIMED_AT
    return [
        Line(f"turns a second, MAX_TURNS={most}: one process", f"{one.turns:.1f}"),
        Line(
            "… two processes",
            f"{two.turns:.1f}",
            ratio=f"{ratio:.2f} ×",
            aim=f"≥ {LEAST_RATIO} ×" if aimed else "",
            met=ratio >= LEAST_RATIO if aimed else None,
        ),
        Line("… of them by each", " + ".join(f"{share:.0%}" for share in two.shares)),
        Line("… taken by the other first, a second", f"{two.raced:.1f}"),
        Line("… Telegram's calls a second of the busiest, one / two", _calls(one, two)),
        Line("… cores: services + PostgreSQL + stand-ins, one", _cores(one)),
        Line("… the same, two", _cores(two)),
    ]


def _calls(one: Rate, two: Rate) -> str:
    return f"{one.calls:.1f} / {two.calls:.1f}"


def _cores(found: Rate) -> str:
    used = found.burden
    return f"{used.services:.2f} + {used.database:.2f} + {used.stand_ins:.2f}"


def _rest(who: str, found: Rest) -> list[Line]:
    services, database = found.cores
    memory = " + ".join(f"{one:.0f} MiB" for one in found.memory)
    return [
        Line(f"at rest, {who}: queries a minute", f"{found.queries:.0f}"),
        Line("… transactions a minute", f"{found.transactions:.0f}"),
        Line("… cores: services + PostgreSQL", f"{services:.3f} + {database:.3f}"),
        Line("… memory of each, litellm loaded", memory),
    ]


def _most(found: Rest) -> list[tuple[str, float]]:
    return list(found.kinds.items())[:SHOWN]


def wakeup_lines(found: Wakeups) -> list[Line]:
    return [
        *_waits("by NOTIFY", found.told, MOST_WAIT),
        *(_waits("looking each second", found.polled) if found.polled else ()),
    ]


def _waits(how: str, waits: Sequence[float], aim: float | None = None) -> list[Line]:
    p95 = _at(waits, 0.95)
    return [
        Line(f"to another process {how}, {len(waits)} messages: p50", _milli(_at(waits, 0.5))),
        Line(
            "… p95",
            _milli(p95),
            aim=f"< {_milli(aim)}" if aim else "",
            met=p95 < aim if aim else None,
        ),
        Line("… p99", _milli(_at(waits, 0.99))),
        Line("… longest", _milli(waits[-1])),
    ]


def _at(waits: Sequence[float], share: float) -> float:
    """``waits`` in order of size: the least that so many are not above."""
    place = min(len(waits) - 1, max(0, -int(-share * len(waits) // 1) - 1))
    return waits[place]


def _milli(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"
