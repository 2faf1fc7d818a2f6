"""What several commands need: the settings with the logs set up by them."""

from collections.abc import Iterable, Mapping
from typing import TextIO

from bots.bookmarks import StoredBookmarks
from bots.cli.environment import environment
from bots.ground import build_adapters
from bots.logs import database_secrets, set_up_logs
from bots.platforms import Platform, Site
from bots.settings import Settings, read_settings, secrets_of
from bots.watch import header_secrets
from core.domain.messages import Inbound
from core.errors import ConfigurationError, StorageError, TransientError
from core.ports import UNWATCHED, Clock, Telemetry
from storage.memory import MemoryStore
from storage.store import SqlStore
from storage.url import parse_url


def prepare(
    platforms: Mapping[str, Platform], stream: TextIO, others: Iterable[str] = ()
) -> Settings:
    """Reads the settings and sends the logs to ``stream``. Raises ConfigurationError."""
    settings = read_settings((*database_faults(), *others))
    named = frozenset(
        variable.name
        for platform in platforms.values()
        for variable in platform.variables
        if variable.secret
    )
    hidden = secrets_of(environment(), named) | header_secrets(environment())
    for address in (settings.database, settings.direct_database):
        hidden |= database_secrets(address)
    set_up_logs(settings.log_level, settings.log_format, hidden, stream)
    return settings


def database_faults() -> tuple[str, ...]:
    found = (_address_fault(name) for name in ("DATABASE_URL", "DIRECT_DATABASE_URL"))
    return tuple(fault for fault in found if fault)


def _address_fault(name: str) -> str:
    address = environment().get(name, "").strip()
    try:
        if address:
            parse_url(address)
    except ConfigurationError as error:
        return str(error).replace("DATABASE_URL", name)
    return ""


def platform_faults(platforms: Mapping[str, Platform], clock: Clock) -> tuple[str, ...]:
    """Every fault of every platform's variables; and that none of them is set up."""
    try:
        build_adapters(platforms, environment(), idle_site(clock))
    except ConfigurationError as error:
        return (str(error),)
    return ()


def idle_site(clock: Clock) -> Site:
    """For adapters that are only looked at: no message is taken."""

    async def refuse(inbound: Inbound) -> None:
        raise TransientError("no messages are taken here")

    public_url = environment().get("PUBLIC_URL", "").strip().rstrip("/")
    return Site(
        accept=refuse,
        clock=clock,
        bookmarks=lambda platform: StoredBookmarks(MemoryStore(), platform),
        commands=(),
        public_url=public_url,
    )


async def open_store(
    settings: Settings, *, read_only: bool = False, telemetry: Telemetry = UNWATCHED
) -> SqlStore:
    """Raises ConfigurationError, StorageError."""
    try:
        return await SqlStore.open(
            settings.database,
            direct=settings.direct_database_url.get_secret_value(),
            read_only=read_only,
            pool_size=settings.database_pool,
            telemetry=telemetry,
        )
    except StorageError:
        telemetry.count("database_error")
        raise


def make_data_folder(settings: Settings) -> None:
    """The folder of everything that is kept on disk, private to its owner.

    Raises ConfigurationError.
    """
    folder = settings.stillhere_data
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"STILLHERE_DATA: the folder {folder} cannot be made ({error.strerror}); "
            "name one that can be written"
        ) from error
