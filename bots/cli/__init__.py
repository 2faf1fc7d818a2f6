"""The command line: finds the module of the command that is asked for, and imports no other."""

import importlib
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import typer

from bots.cli.environment import add_file
from core.errors import ConfigurationError, StillhereError, StorageError

EXIT_CONFIGURATION = 78
"""EX_CONFIG of sysexits.h: no supervisor should start us again before someone has mended it."""
EXIT_DATABASE = 75
"""EX_TEMPFAIL: starting again may help."""
EXIT_FAULT = 1
COMMANDS: Mapping[str, str] = {
    "run": "Serve all configured platforms until SIGTERM or Ctrl-C.",
    "chat": "Talk to the agent here in the terminal; it goes on where it was when you come back.",
    "migrate": "Create or upgrade the database, or take it back; a SQLite file is copied first.",
    "doctor": "Check settings, database, model and platforms; exit 1 if anything is wrong.",
    "owner": "Who owns the bot; `--reset` takes it back and prints a new code.",
    "sessions": "Look at stored conversations, also while the service runs.",
    "slack": "Help to set up Slack: `stillhere slack manifest`.",
    "discord": "What belongs to Discord: `invite` prints the links that bring the bot in.",
}

log = logging.getLogger(__name__)


def main() -> None:
    try:
        add_file(Path(".env"))
        os.environ.setdefault("PTB_TIMEDELTA", "true")
        _app(next((word for word in sys.argv[1:] if not word.startswith("-")), ""))()
    except ConfigurationError as error:
        _fail("Wrong configuration", error, EXIT_CONFIGURATION)
    except StorageError as error:
        _fail("The database does not answer", error, EXIT_DATABASE)
    except StillhereError as error:
        _fail("It cannot be done", error, EXIT_FAULT)
    except Exception as error:
        log.exception("unexpected error")
        _fail("Stopped by an unexpected error; the log has the whole of it", error, EXIT_FAULT)


def _app(asked: str) -> typer.Typer:
    app = typer.Typer(
        name="stillhere",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_no_options)
    for name, summary in COMMANDS.items():
        if name == asked:
            importlib.import_module(f"bots.cli.{name}").register(app, summary)
        else:
            app.command(name, help=summary)(_no_options)
    return app


def _no_options() -> None:
    """A chat-bot service whose conversations survive a kill at any moment."""


def _fail(head: str, error: Exception, code: int) -> None:
    lines = "\n".join(f"  {line}" for line in str(error).splitlines())
    typer.echo(f"{head}:\n{lines}", err=True)
    raise SystemExit(code)
