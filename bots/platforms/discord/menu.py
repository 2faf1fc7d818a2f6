"""Offers our commands in Discord's menu, in guilds, in DMs and to people who installed us for
themselves; none of them is run from here."""

from typing import Any

import discord
from discord import app_commands

LONGEST_SUMMARY = 100
EVERYWHERE = app_commands.AppCommandContext(guild=True, dm_channel=True, private_channel=True)
FOR_ALL = app_commands.AppInstallationType(guild=True, user=True)


async def offer(client: discord.Client, commands: tuple[tuple[str, str], ...]) -> None:
    """Raises what the SDK does."""
    tree = app_commands.CommandTree(client)
    for name, summary in commands:
        command: app_commands.Command[Any, ..., None] = app_commands.Command(
            name=name,
            description=summary[:LONGEST_SUMMARY],
            callback=_never,
            allowed_contexts=EVERYWHERE,
            allowed_installs=FOR_ALL,
        )
        tree.add_command(command)
    await tree.sync()


@app_commands.describe(text="what belongs to the command, if anything")
async def _never(interaction: discord.Interaction, text: str = "") -> None:
    """The gateway's client has no tree: it reads every interaction by itself."""
    raise NotImplementedError(f"{interaction.id} {text}")
