"""The command line: finds the module of the command that is asked for, and imports no other."""

import importlib
import os
import sys
from pathlib import Path

import typer
from dotenv import load_dotenv

from core.errors import ConfigurationError, StorageError

EXIT_CONFIGURATION = 78
"""EX_CONFIG of sysexits.h: no supervisor should start us again before someone has mended it."""
EXIT_DATABASE = 75
"""EX_TEMPFAIL: starting again may help."""
COMMANDS = ("run", "chat", "migrate", "doctor", "sessions")


def main() -> None:
    load_dotenv(Path(".env"))
    os.environ.setdefault("PTB_TIMEDELTA", "true")
    asked = next((word for word in sys.argv[1:] if not word.startswith("-")), None)
    names = (asked,) if asked in COMMANDS else COMMANDS
    app = typer.Typer(
        name="stillhere",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_no_options)
    for name in names:
        importlib.import_module(f"bots.cli.{name}").register(app)
    try:
        app()
    except ConfigurationError as error:
        _fail("Wrong configuration", error, EXIT_CONFIGURATION)
    except StorageError as error:
        _fail("The database does not answer", error, EXIT_DATABASE)


def _no_options() -> None:
    """A chat-bot service whose conversations survive a kill at any moment."""


def _fail(head: str, error: Exception, code: int) -> None:
    lines = "\n".join(f"  {line}" for line in str(error).splitlines())
    typer.echo(f"{head}:\n{lines}", err=True)
    raise SystemExit(code)
