"""The benchmarks run, say every number that is aimed at, and keep the prose around their table."""

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.counting import CountTimes
from benchmarks.crowd import CrowdRates
from benchmarks.disk import DiskUse
from benchmarks.flushes import Flushes
from benchmarks.life import Cost, LifeCost, Stage
from benchmarks.report import (
    BEGIN,
    END,
    LIFE_BEGIN,
    LIFE_END,
    Lived,
    Measured,
    as_markdown,
    life_lines,
    lines,
    write_into,
)
from benchmarks.restore import RestoreTimes
from benchmarks.steps import StepTimes

ROW = re.compile(r"^\| (.+?) +\| (.+?) +\|.*\| (≤|≥) \S+", re.MULTILINE)


def found(*, commit: float = 1e-3, rate: float = 9_999, raw: float = 50_000) -> Measured:
    return Measured(
        steps=StepTimes(
            commit={0: 1e-3, 10: commit}, whole={0: 2e-3, 10: 2e-3}, raw=0.5e-3, flush=2e-4
        ),
        crowd=CrowdRates(commit=rate, whole=1_000, raw=raw),
        flushes=Flushes(alone=1.01, crowd=None),
        disk=DiskUse(payload=1_000, at_rest=2_600, running=3_000, tables={"events": 2_000}),
        restore=RestoreTimes(opening=0.005, stopped=0.001, killed=0.021, tail=45, from_log=0.3),
    )


def lived(first: Cost | None, last: Cost | None) -> Lived:
    """The middle is as the beginning."""
    early, late = (
        Stage(turn=turn, summed_up=None, summaries=0, snapshot=1_000) for turn in (first, last)
    )
    life = LifeCost(
        messages=100, span=10, window=8_000, summaries=3, first=early, middle=early, last=late
    )
    return Lived(life=life, counting={8_000: CountTimes(0.02, 0.001)})


def test_each_aim_is_held_against_what_was_measured() -> None:
    met = {line.what: line.met for line in lines(found(commit=1.6e-3)) if line.aim}
    assert met == {
        "durable step, 0 messages before": True,
        "durable step, 10 messages before": False,
        "slowest of these over fastest": False,
        "flushes a step, alone": True,
        "flushes a step, 100 sessions": None,
        "durable steps a second, 100 sessions": False,
        "bytes on disk a byte said": False,
        "session restored after a clean stop": True,
        "… after a kill, 45 events to fold": False,
    }


@pytest.mark.parametrize(("rate", "raw"), [(10_000, 50_000), (3_400, 10_000)])
def test_a_crowd_is_fast_enough_by_either_measure(rate: float, raw: float) -> None:
    rows = {line.what: line.met for line in lines(found(rate=rate, raw=raw))}
    assert rows["durable steps a second, 100 sessions"]


@pytest.mark.parametrize(("last", "met"), [(0.012, True), (0.0121, False)])
def test_a_long_life_costs_by_its_processor_time(last: float, met: bool) -> None:
    rows = life_lines(lived(Cost(wall=1.0, cpu=0.01), Cost(wall=9.0, cpu=last)))
    assert [line.met for line in rows if line.aim] == [met]


def test_a_life_without_a_turn_to_measure_says_so() -> None:
    rows = {line.what: line for line in life_lines(lived(None, None))}
    flat = rows["dearest of these turns over cheapest"]
    assert (flat.ours, flat.met) == ("not measured here", None)


def test_columns_that_say_nothing_are_left_out() -> None:
    rows = life_lines(lived(None, None))
    assert "raw aiosqlite" not in as_markdown(rows, [])


def test_each_table_has_its_own_place(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"{BEGIN}\nsteps\n{END}\n{LIFE_BEGIN}\nold\n{LIFE_END}\n")
    write_into(page, "life\n", LIFE_BEGIN, LIFE_END)
    assert page.read_text() == f"{BEGIN}\nsteps\n{END}\n{LIFE_BEGIN}\nlife\n{LIFE_END}\n"


def test_a_document_keeps_its_prose(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"# Before\n\n{BEGIN}\nold\n{END}\n\nAfter.\n")
    table = as_markdown(lines(found()), ["Somewhere."])
    write_into(page, table)
    write_into(page, table)
    assert page.read_text() == f"# Before\n\n{BEGIN}\n{table}{END}\n\nAfter.\n"


def test_a_document_without_a_place_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("# Prose\n")
    with pytest.raises(ValueError, match="has no lines"):
        write_into(page, "table")
    assert page.read_text() == "# Prose\n"


def test_a_small_run_measures_every_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--quick", "--only", "steps", "--folder", str(tmp_path / "disk")])
    aimed = ROW.findall(capsys.readouterr().out)
    assert len(aimed) == 10
    assert list((tmp_path / "disk").iterdir()) == []


def test_a_small_life_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--quick", "--only", "life", "--folder", str(tmp_path / "disk")])
    table = capsys.readouterr().out
    turns = re.findall(r"^\| a turn, (\w+) 24 messages: processor +\| \d", table, re.MULTILINE)
    assert turns == ["first", "middle", "last"]
    assert re.search(r"^\| dearest of these turns over cheapest +\| \+\d+%", table, re.MULTILINE)
    assert re.search(r"^\| counting 1,000 tokens, first time +\| \d", table, re.MULTILINE)
    assert not re.search(r"^\| summaries in 72 messages +\| 0", table, re.MULTILINE)
    assert list((tmp_path / "disk").iterdir()) == []
