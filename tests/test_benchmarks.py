"""The benchmarks run, say every number that is aimed at, and keep the prose around their table."""

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.crowd import CrowdRates
from benchmarks.disk import DiskUse
from benchmarks.flushes import Flushes
from benchmarks.report import BEGIN, END, Measured, as_markdown, lines, write_into
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


def test_a_small_run_measures_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--quick", "--folder", str(tmp_path / "disk")])
    aimed = ROW.findall(capsys.readouterr().out)
    assert len(aimed) == 10
    assert list((tmp_path / "disk").iterdir()) == []
