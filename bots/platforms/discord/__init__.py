"""The Discord platform; nothing but its ``PLATFORM`` is meant for others."""

from bots.platforms.discord.platform import PLATFORM

__all__ = ["PLATFORM"]
