"""The Telegram platform; nothing but its ``PLATFORM`` is meant for others."""

from bots.platforms.telegram.platform import PLATFORM

__all__ = ["PLATFORM"]
