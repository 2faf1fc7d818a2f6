"""``docs/field.md`` leaves out no row, and every test that it names is there."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/field.md"
ROWS = {
    *(
        f"{group}{n}"
        for group, last in {"L": 13, "D": 7, "S": 7, "X": 7, "R": 6}.items()
        for n in range(1, last + 1)
    ),
    "W2",
}
ROW = re.compile(r"^\| ([A-Z]\d+) \|(.*)\|$", re.MULTILINE)
NAME = re.compile(r"`(tests/[\w/]+\.py)((?:::\w+)+)`")


def rows() -> list[tuple[str, str]]:
    return ROW.findall(PAGE.read_text())


def names_in(path: Path) -> set[str]:
    """As pytest names them, without parameters."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        found |= _names(node, "")
    return found


def _names(node: ast.stmt, inside: str) -> set[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test_"):
            return {f"{inside}::{node.name}"}
        case ast.ClassDef():
            return {name for one in node.body for name in _names(one, f"{inside}::{node.name}")}
        case _:
            return set()


def test_every_row_is_there_once() -> None:
    assert Counter(row for row, _ in rows()) == Counter(ROWS)


def test_every_row_names_a_test() -> None:
    assert [row for row, cells in rows() if not NAME.search(cells)] == []


def test_every_test_that_is_named_is_there() -> None:
    named = NAME.findall(PAGE.read_text())
    missing = [f"{file}{test}" for file, test in named if not (ROOT / file).is_file()]
    known = {file: names_in(ROOT / file) for file, _ in named if (ROOT / file).is_file()}
    missing += [f"{file}{test}" for file, test in named if test not in known.get(file, {test})]
    assert missing == []


def test_a_test_that_is_renamed_is_missed(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(
        "class TestIt:\n    async def test_a(self): ...\n\ndef test_b(): ...\n\nx = 1\n"
    )
    assert names_in(file) == {"::TestIt::test_a", "::test_b"}
