"""``stillhere discord``: what has to be done at Discord by hand; it makes no call."""

import typer

from bots.cli.environment import environment
from bots.platforms.discord.invite import links
from bots.platforms.discord.platform import PLATFORM
from bots.platforms.discord.settings import read
from core.errors import ConfigurationError


def register(app: typer.Typer, summary: str) -> None:
    group = typer.Typer(help=summary, no_args_is_help=True)
    group.callback()(_no_options)
    group.command("invite")(invite)
    app.add_typer(group, name="discord")


def invite() -> None:
    """The links that bring the bot into a server, or to a person, with what each allows."""
    settings = read(PLATFORM.given(environment()))
    if settings is None:
        raise ConfigurationError("DISCORD_BOT_TOKEN is not set; the links follow from it")
    found = links(settings.application_id)
    typer.echo(f"To add the bot to a server that you manage:\n  {found.server}")
    typer.echo(f"To use it yourself, in any chat, without a server:\n  {found.person}")


def _no_options() -> None:
    """With one command alone typer would leave out its name."""
