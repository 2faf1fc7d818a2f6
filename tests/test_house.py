"""The promises of the files around the code; it never looks into the code itself."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parent.parent
LOCKS: Final = ("requirements.txt", "requirements-dev.txt")
TARGETS: Final = (
    "run",
    "test",
    "check",
    "bench",
    "matrix",
    "soak",
    "chaos",
    "fix",
    "lock",
    "clean",
    "help",
)
PIN: Final = re.compile(
    r"^([a-z0-9][a-z0-9-]*)==([^\s;]+)( ; [^\\]+)?( --hash=sha256:[0-9a-f]{64})+$"
)

# Brackets around one letter keep this file from finding itself.
REGISTRY: Final = re.compile(
    r"py[p]i\.org|pythonhoste[d]\.org|npm[j]s\.org|de[b]\.debian\.org|ghc[r]\.io"
    r"|--extra-inde[x]-url|--inde[x]-url[ =]|--find-link[s][ =]"
)
MACHINE_PATH: Final = re.compile(
    r"(?<![\w.~])/(?:[r]oot|[w]ork|[h]ome/[a-z]\w+|[U]sers/\w+)/|file://[/]|/tm[p]/dev/|/op[t]/p\w+/"
)
MAKE_CALL: Final = re.compile(r"(?:^\s*(?:\$ )?|`|entry: )make ([a-z]+)", re.MULTILINE)


def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]


def pins(lock: str) -> dict[str, str]:
    matches = [PIN.match(line) for line in lock_lines(lock)]
    return {match[1]: match[2] for match in matches if match}


def lock_lines(lock: str) -> list[str]:
    """The requirements of a lock, one a line, continuation lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / lock).read_text(), flags=re.MULTILINE)
    return re.sub(r"\s*\\\n\s*", " ", text).splitlines()


def found(pattern: re.Pattern[str]) -> list[str]:
    """Where the files that git knows match, as `file: text`."""
    git = shutil.which("git") or "git"
    names = subprocess.run([git, "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [name for name in names.stdout.splitlines() if (ROOT / name).is_file()]
    assert paths, "git knows no file"
    return [
        f"{name}: {match[0]}"
        for name in paths
        for match in pattern.finditer((ROOT / name).read_text(errors="replace"))
    ]


def unmet(requirements: list[str], lock: str) -> list[str]:
    locked = pins(lock)
    wanted = [Requirement(text) for text in requirements]
    return [
        str(w)
        for w in wanted
        if not w.specifier.contains(locked.get(canonicalize_name(w.name), "0"))
    ]


def test_no_file_names_a_registry() -> None:
    assert found(REGISTRY) == []


def test_no_file_names_a_place_on_someones_machine() -> None:
    assert found(MACHINE_PATH) == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_of_a_lock_is_a_pin_with_hashes(lock: str) -> None:
    lines = lock_lines(lock)
    assert len(lines) > 50
    assert [line for line in lines if not PIN.match(line)] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_no_address(lock: str) -> None:
    assert re.findall(r"\S*(?://|@)\S*", (ROOT / lock).read_text()) == []


def test_the_development_lock_holds_the_run_time_lock() -> None:
    assert pins("requirements.txt").items() <= pins("requirements-dev.txt").items()


def test_the_locks_satisfy_the_project_file() -> None:
    extras = project()["optional-dependencies"]
    assert (
        unmet([*project()["dependencies"], *extras["build"], *extras["otel"]], "requirements.txt")
        == []
    )
    assert unmet(extras["dev"], "requirements-dev.txt") == []


def test_python_version_is_a_supported_one() -> None:
    version = (ROOT / ".python-version").read_text().strip()
    assert SpecifierSet(project()["requires-python"]).contains(version)
    assert SpecifierSet(">=3.11").contains(version)


@pytest.mark.parametrize("target", TARGETS)
def test_make_knows_the_target(target: str) -> None:
    make = shutil.which("make") or "make"
    outside = {"PATH": os.environ["PATH"]}
    plan = subprocess.run(
        [make, "-n", target], cwd=ROOT, env=outside, capture_output=True, text=True
    )
    assert (plan.returncode, plan.stderr) == (0, "")
    assert plan.stdout
    assert "Nothing to be done" not in plan.stdout


def test_every_make_call_in_the_documents_exists() -> None:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / ".ci/run"]
    documents.append(ROOT / ".pre-commit-config.yaml")
    calls = {call for path in documents for call in MAKE_CALL.findall(path.read_text())}
    assert {"run", "test", "check"} <= calls
    assert calls - set(TARGETS) == set()


def test_ci_can_be_run() -> None:
    script = ROOT / ".ci/run"
    assert script.stat().st_mode & 0o111
    assert script.read_text().startswith("#!/usr/bin/env bash\n")
