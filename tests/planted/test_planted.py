"""The property test of the domain notices mistakes, and nothing but mistakes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.planted.bugs import BUGS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_planted_bug_is_caught() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.planted.run"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    verdicts = [line.split("\t") for line in run.stdout.splitlines()]
    expected = [["missed", "nothing is wrong"], *(["caught", bug.name] for bug in BUGS)]
    assert verdicts == expected
