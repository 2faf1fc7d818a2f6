"""Plants one bug after the other in a copy of the code and runs the property test on each.

``python -m tests.planted.run`` prints one line a bug; it changes nothing but a temporary folder.
"""

import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.planted.bugs import BUGS, Bug

ROOT = Path(__file__).parents[2]
COPIED = ("core/domain", "core/commands", "core/errors.py", "core/plugins.py", "core/__init__.py")
CHECKED_BY = "tests/core/domain"
VERDICTS = ("caught", "missed", "broken")
CONTROL = Bug("nothing is wrong", "core/errors.py", "", "")


def verdict(bug: Bug, examples: int) -> str:
    """«broken» when the code with the bug cannot even be imported."""
    with tempfile.TemporaryDirectory() as folder:
        _plant(bug, Path(folder))
        child = os.fork()
        if child == 0:
            _try_and_leave(folder, examples)
        _, status = os.waitpid(child, 0)
    return VERDICTS[os.waitstatus_to_exitcode(status)]


def _try_and_leave(folder: str, examples: int) -> NoReturn:
    verdict = "broken"
    try:
        machine = _load(folder)
        verdict = "caught"
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=60,
                derandomize=True,
                database=None,
                deadline=None,
                phases=(Phase.generate,),
                suppress_health_check=[HealthCheck.too_slow],
            ),
        )
        verdict = "missed"
    finally:
        os._exit(VERDICTS.index(verdict))


def _plant(bug: Bug, folder: Path) -> None:
    for name in (*COPIED, CHECKED_BY):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, target)
    file = folder / bug.file
    text = file.read_text()
    if bug.old and text.count(bug.old) != 1:
        raise LookupError(f"{bug.name}: its place in {bug.file} is gone; find the new one")
    file.write_text(text.replace(bug.old, bug.new) if bug.old else text)


def _load(folder: str) -> type[RuleBasedStateMachine]:
    sys.path[:] = [folder, *(path for path in sys.path if Path(path or ".").resolve() != ROOT)]
    for name in [n for n in sys.modules if n.partition(".")[0] in ("core", "tests")]:
        del sys.modules[name]
    return import_module("tests.core.domain.machine").Sessions


def main() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    for bug, examples in ((CONTROL, 20), *((bug, 400) for bug in BUGS)):
        sys.stdout.write(f"{verdict(bug, examples)}\t{bug.name}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
