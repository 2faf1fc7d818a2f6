"""Measurements as lines with their aims, for the terminal and for a document; it measures nothing.

The aims are the project's own; a missed one is shown, and fails nothing.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from benchmarks.counting import CountTimes
from benchmarks.crowd import CrowdRates
from benchmarks.disk import DiskUse
from benchmarks.flushes import Flushes
from benchmarks.life import Cost, LifeCost, Stage
from benchmarks.restore import RestoreTimes
from benchmarks.steps import StepTimes

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
LIFE_BEGIN, LIFE_END = "<!-- long life measured: begin -->", "<!-- long life measured: end -->"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    steps: StepTimes
    crowd: CrowdRates
    flushes: Flushes
    disk: DiskUse
    restore: RestoreTimes


class Lived(msgspec.Struct, frozen=True, kw_only=True):
    life: LifeCost
    counting: dict[int, CountTimes]


class Line(msgspec.Struct, frozen=True):
    """``met`` is None where nothing is aimed at, or nothing could be measured."""

    what: str
    ours: str
    raw: str = ""
    ratio: str = ""
    aim: str = ""
    met: bool | None = None


def lines(found: Measured) -> list[Line]:
    return [
        *_steps(found.steps),
        *_flushes(found.flushes),
        *_crowd(found.crowd),
        *_disk(found.disk),
        *_restore(found.restore),
    ]


def _steps(found: StepTimes) -> list[Line]:
    raw, worst = found.raw, max(found.commit.values())
    spread = worst / min(found.commit.values()) - 1
    return [
        *(
            Line(
                f"durable step, {history:,} messages before",
                _micro(took),
                _micro(raw),
                f"{took / raw:.2f} ×",
                "≤ 3 ×",
                took <= 3 * raw,
            )
            for history, took in found.commit.items()
        ),
        Line("slowest of these over fastest", f"+{spread:.0%}", "", "", "≤ 20 %", spread <= 0.2),
        *(
            Line(
                f"whole step, {history:,} messages before",
                _micro(took),
                _micro(raw),
                f"{took / raw:.2f} ×",
            )
            for history, took in found.whole.items()
        ),
        Line("4 KB written and flushed by themselves", _micro(found.flush)),
    ]


def _flushes(found: Flushes) -> list[Line]:
    return [
        _count("flushes a step, alone", found.alone, 1.2),
        _count("flushes a step, 100 sessions", found.crowd, 0.1),
    ]


def _count(what: str, found: float | None, aim: float) -> Line:
    if found is None:
        return Line(what, "not measured here", aim=f"≤ {aim}")
    return Line(what, f"{found:.3f}", aim=f"≤ {aim}", met=found <= aim)


def _crowd(found: CrowdRates) -> list[Line]:
    met = found.commit >= 10_000 or found.commit * 3 >= found.raw
    return [
        Line(
            "durable steps a second, 100 sessions",
            f"{found.commit:,.0f}",
            f"{found.raw:,.0f}",
            f"{found.commit / found.raw:.2f} ×",
            "≥ 10,000 or ≥ 0.33 ×",
            met,
        ),
        Line(
            "whole steps a second, 100 sessions",
            f"{found.whole:,.0f}",
            f"{found.raw:,.0f}",
            f"{found.whole / found.raw:.2f} ×",
        ),
    ]


def _disk(found: DiskUse) -> list[Line]:
    a_byte = found.at_rest / found.payload
    return [
        Line("bytes on disk a byte said", f"{a_byte:.2f}", aim="≤ 2.5", met=a_byte <= 2.5),
        Line("… with the journal of a running service", f"{found.running / found.payload:.2f}"),
        *(
            Line(f"… of it {name}", f"{size / found.payload:.2f}")
            for name, size in found.tables.items()
            if size * 100 > found.at_rest
        ),
    ]


def _restore(found: RestoreTimes) -> list[Line]:
    return [
        Line("session restored after a clean stop", *_within(found.stopped)),
        Line(f"… after a kill, {found.tail} events to fold", *_within(found.killed)),
        Line("… without any snapshot", _milli(found.from_log)),
        Line("opening the database", _milli(found.opening)),
    ]


def _within(took: float) -> tuple[str, str, str, str, bool]:
    return _milli(took), "", "", "≤ 20 ms", took <= 0.02


def life_lines(found: Lived) -> list[Line]:
    life = found.life
    stages = {"first": life.first, "middle": life.middle, "last": life.last}
    return [
        *(
            line
            for name, stage in stages.items()
            for line in _stage(f"{name} {life.span:,} messages", stage)
        ),
        _flat([stage.turn.cpu for stage in stages.values() if stage.turn]),
        Line(f"summaries in {life.messages:,} messages", f"{life.summaries:,}"),
        *(
            line
            for tokens, took in found.counting.items()
            for line in (
                Line(f"counting {tokens:,} tokens, first time", _milli(took.first)),
                Line("… once more", _milli(took.again)),
            )
        ),
    ]


def _stage(where: str, found: Stage) -> list[Line]:
    return [
        Line(f"a turn, {where}: processor", _cost(found.turn, "cpu")),
        Line("… until it is sent", _cost(found.turn, "wall")),
        Line("… with a summary: processor", _cost(found.summed_up, "cpu")),
        Line("… largest snapshot", f"{found.snapshot / 1000:.1f} KB"),
    ]


def _flat(processor: Sequence[float]) -> Line:
    """Of the processor's time, since a busy machine has no share in it."""
    what, aim = "dearest of these turns over cheapest", "≤ 20 %"
    if not processor:
        return Line(what, "not measured here", aim=aim)
    spread = max(processor) / min(processor) - 1
    return Line(what, f"+{spread:.0%}", aim=aim, met=spread <= 0.2)


def _cost(found: Cost | None, which: Literal["cpu", "wall"]) -> str:
    return _milli(getattr(found, which)) if found else "not measured here"


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"


def _milli(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


_HEAD = ("", "Stillhere", "raw aiosqlite", "ratio", "aim", "met")
_MET = {True: "yes", False: "no", None: ""}


def as_markdown(rows: Sequence[Line], remarks: Sequence[str]) -> str:
    table = [_HEAD, *((*msgspec.structs.astuple(row)[:-1], _MET[row.met]) for row in rows)]
    table = [list(row) for row in zip(*_used(table), strict=True)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    padded = [[cell.ljust(w) for cell, w in zip(row, widths, strict=True)] for row in table]
    padded.insert(1, ["-" * width for width in widths])
    body = "\n".join(f"| {' | '.join(row)} |" for row in padded)
    return "\n".join([*(f"- {remark}" for remark in remarks), "", body, ""])


def _used(table: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The columns that say anything under their head."""
    columns = list(zip(*table, strict=True))
    return [column for column in columns if any(column[1:])]


def write_into(document: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Raises ValueError where the document has no place for it."""
    marked = re.compile(f"(?<={re.escape(begin)}\n).*(?={re.escape(end)})", re.DOTALL)
    changed, count = marked.subn(lambda _: text, document.read_text())
    if count != 1:
        raise ValueError(f"{document} has no lines {begin} and {end}")
    document.write_text(changed)
