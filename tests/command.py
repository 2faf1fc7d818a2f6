"""The command line as a process of its own, in an environment with nothing of the developer's."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATIENCE = 60.0


def surroundings(folder: Path, **variables: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TERM": "xterm",
        "PYTHONPATH": str(ROOT),
        "STILLHERE_DATA": str(folder / "data"),
        "MODEL": "demo",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        **variables,
    }


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "bots", *words]


def run(
    folder: Path, *words: str, given: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """To its end. ``given`` is piped in."""
    return subprocess.run(
        command(*words),
        cwd=folder,
        env=surroundings(folder, **variables),
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
