"""The Slack platform; nothing but its ``PLATFORM`` is meant for others."""

from bots.platforms.slack.platform import PLATFORM

__all__ = ["PLATFORM"]
