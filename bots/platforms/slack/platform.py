"""Says what the Slack platform needs and how it is built; building makes no call."""

from collections.abc import Mapping

from bots.platforms import Adapter, Platform, Site
from bots.platforms.slack import settings
from bots.platforms.slack.adapter import SlackAdapter
from core.ports import Pace, Paces

PACES = Paces(chat=Pace(1.2, 3), group=Pace(1.2, 3), bot=Pace(0.2, 20))
"""One message a second in a channel, with short bursts; 50 updates a minute are sure, several
hundred messages a minute are allowed (https://docs.slack.dev/apis/web-api/rate-limits)."""


def build(variables: Mapping[str, str], site: Site) -> Adapter | None:
    chosen = settings.read(variables)
    return SlackAdapter(chosen, site) if chosen else None


PLATFORM = Platform(name="slack", variables=settings.VARIABLES, build=build, paces=PACES)
