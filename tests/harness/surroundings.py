"""The environment that each service of the harness is born into; it starts nothing."""

import os
from pathlib import Path

from tests.harness.tools import LEDGER


def ledger_of(folder: Path) -> Path:
    return folder / "ledger"


def effects_in(folder: Path) -> list[str]:
    """What the tools did, a line each."""
    ledger = ledger_of(folder)
    return ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []


def surroundings(folder: Path, database: str, model_url: str) -> dict[str, str]:
    """Without a platform."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "DATABASE_URL": database,
        "STILLHERE_DATA": str(folder),
        "MODEL": "openai/test",
        "OPENAI_API_KEY": "sk-stand-in-key",
        "OPENAI_API_BASE": f"{model_url}/v1",
        "ALLOWED_USERS": "*",
        LEDGER: str(ledger_of(folder)),
    }
