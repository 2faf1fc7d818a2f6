"""What the file .env adds to the environment, and what it leaves alone."""

import os
from pathlib import Path

import pytest

from bots.cli.environment import add_file, environment
from core.errors import ConfigurationError

NAMES = ("STILL_A", "STILL_B", "STILL_C", "STILL_D")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set first, so that what a test adds is taken away again."""
    for name in NAMES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_the_file_adds_what_is_not_set_or_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STILL_A", "from the shell")
    monkeypatch.setenv("STILL_B", "")
    lines = ["STILL_A=x", "STILL_B='from the file'", "STILL_C=", "# a remark", "STILL_D=ä # no"]
    (tmp_path / ".env").write_text("\n".join(lines), encoding="utf-8")
    add_file(tmp_path / ".env")
    found = {name: environment().get(name) for name in NAMES}
    assert found == {
        "STILL_A": "from the shell",
        "STILL_B": "from the file",
        "STILL_C": None,
        "STILL_D": "ä",
    }
    assert os.environ["STILL_D"] == "ä"


def test_the_file_need_not_be_there(tmp_path: Path) -> None:
    before = environment()
    add_file(tmp_path / ".env")
    assert environment() == before


def test_a_file_that_cannot_be_read_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"MODEL=\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"\.env cannot be read as UTF-8 text"):
        add_file(tmp_path / ".env")


def test_a_copy_of_the_example_changes_nothing() -> None:
    before = environment()
    add_file(Path(__file__).parents[3] / ".env.example")
    assert environment() == before
