"""Says what the Telegram platform needs and how it is built; building makes no call."""

from collections.abc import Mapping

from bots.platforms import Adapter, Platform, Site
from bots.platforms.telegram import settings
from bots.platforms.telegram.adapter import TelegramAdapter


def build(variables: Mapping[str, str], site: Site) -> Adapter | None:
    chosen = settings.read(variables, site.public_url)
    return TelegramAdapter(chosen, site) if chosen else None


PLATFORM = Platform(name="telegram", variables=settings.VARIABLES, build=build)
