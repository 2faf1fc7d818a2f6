"""What a service stands on, and the platforms that its environment sets up; it starts nothing."""

from collections.abc import Mapping

import msgspec

from bots.platforms import Adapter, Platform, Site
from bots.settings import Settings
from bots.watch import Watch
from core.errors import ConfigurationError
from core.ports import Clock, Model, Store, Tool

LEASE_SECONDS = 15.0
"""How long a session stays with a process that says nothing; renewed at a third of it."""


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What the service stands on; tests bring their own."""

    settings: Settings
    environment: Mapping[str, str]
    store: Store
    platforms: Mapping[str, Platform]
    clock: Clock
    model: Model | None = None
    """None: as the settings say."""
    tools: Mapping[str, Tool] | None = None
    """None: those of ``core.tools``."""
    lease: float = LEASE_SECONDS
    renew_every: float | None = None
    """Seconds of the machine's clock; None: a third of the lease."""
    watch: Watch | None = None
    """None: as the environment says. It is closed with the service."""


def build_adapters(
    platforms: Mapping[str, Platform], environment: Mapping[str, str], site: Site
) -> dict[str, Adapter]:
    """Of the platforms that are set up. Raises ConfigurationError with every fault of every
    platform, one a line, or when there is none to talk by."""
    adapters: dict[str, Adapter] = {}
    faults: list[str] = []
    for name, platform in platforms.items():
        try:
            adapter = platform.build(platform.given(environment), site)
        except ConfigurationError as error:
            faults.append(str(error))
            continue
        if adapter is not None:
            adapters[name] = adapter
    if faults:
        raise ConfigurationError("\n".join(faults))
    if not adapters:
        first = " or ".join(p.variables[0].name for p in platforms.values() if p.variables)
        raise ConfigurationError(
            f"no platform is set up: set {first} (see .env.example), "
            "or talk in the terminal with `stillhere chat`"
        )
    return adapters
