"""``stillhere slack``: helps to set up Slack; it calls nobody."""

import json
from typing import Annotated

import typer

from bots.cli.environment import environment
from bots.platforms.slack.manifest import manifest as build_manifest
from core import commands as commands_package
from core.errors import ConfigurationError
from core.plugins import discover


def register(app: typer.Typer, summary: str) -> None:
    group = typer.Typer(help=summary, no_args_is_help=True)
    group.callback()(_slack)
    group.command("manifest")(manifest)
    app.add_typer(group, name="slack")


def _slack() -> None:
    """Help to set up Slack."""


def manifest(
    name: Annotated[str, typer.Option(help="What the app is called.")] = "Stillhere",
    http: Annotated[  # noqa: FBT002 - typer makes a flag of it
        bool, typer.Option("--http", help="Events over HTTP at PUBLIC_URL, not Socket Mode.")
    ] = False,
) -> None:
    """The app's manifest, to paste at api.slack.com/apps, «Create New App», «From a manifest»."""
    public_url = environment().get("PUBLIC_URL", "").strip() if http else ""
    if http and not public_url.startswith("https://"):
        raise ConfigurationError(
            "PUBLIC_URL is not set to the https address at which Slack reaches this service, like "
            "https://bot.example.org"
        )
    commands = sorted(discover(commands_package, "COMMAND"))
    made = build_manifest(commands, name=name, public_url=public_url)
    typer.echo(json.dumps(made, indent=2, ensure_ascii=False))
