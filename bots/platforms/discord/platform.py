"""Says what the Discord platform needs and how it is built; building makes no call."""

from collections.abc import Mapping

from bots.platforms import Adapter, Platform, Site
from bots.platforms.discord import settings
from bots.platforms.discord.adapter import DiscordAdapter
from core.ports import Pace, Paces

PACES = Paces(chat=Pace(1.0, 4), group=Pace(1.0, 4), bot=Pace(1 / 40, 40))
"""Five calls in five seconds are seen in each channel, whose kind does not matter, and 50 a second
are allowed in all. https://docs.discord.com/developers/topics/rate-limits"""


def build(variables: Mapping[str, str], site: Site) -> Adapter | None:
    chosen = settings.read(variables)
    return DiscordAdapter(chosen, site) if chosen else None


PLATFORM = Platform(name="discord", variables=settings.VARIABLES, build=build, paces=PACES)
