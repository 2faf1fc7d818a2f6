"""What a platform's module offers: one ``PLATFORM``; it may import nothing of the runtime."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Protocol

import msgspec
from starlette.routing import Route

from core.domain.messages import Inbound
from core.ports import Channel, Clock, Paces


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """One environment variable of the platform; a test compares them with ``.env.example``."""

    name: str
    help: str
    secret: bool = False


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """``detail`` says what is wrong and what to do, or how all is well; it holds no secret.

    ``lasting``: it stays wrong until somebody changes how it is set up. ``name`` is the bot's own
    on the platform, ``link`` leads people to it, as far as the platform told; ``start_link``, with
    a word behind it, opens a chat in which the next press says `/start WORD`.
    """

    ok: bool
    detail: str
    lasting: bool = False
    name: str = ""
    link: str = ""
    start_link: str = ""
    last_sign: datetime | None = None
    """When the platform was last heard from, UTC."""
    connected_since: datetime | None = None
    last_inbound: datetime | None = None
    last_outbound: datetime | None = None
    last_error: str = ""
    last_error_at: datetime | None = None


class Bookmarks(Protocol):
    """Where reading goes on after a downtime, on a platform that keeps its chats' history and does
    not bring again what was missed. A bookmark may lag behind and never runs ahead: all messages of
    the chat up to it are on disk. Both raise StorageError."""

    async def read(self) -> Mapping[str, str]:
        """By chat, as ``put`` wrote them."""
        ...

    async def put(self, chat: str, place: str) -> None: ...


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What a platform is given. ``accept`` returns when a message is on disk; only then may the
    platform be told that we have it. It raises StorageError: then it must not be told.

    ``bookmarks`` are asked for by the platform's name; ``commands`` are the slash commands for a
    native menu: names with their summaries.
    """

    accept: Callable[[Inbound], Awaitable[None]]
    clock: Clock
    bookmarks: Callable[[str], Bookmarks]
    commands: tuple[tuple[str, str], ...]
    public_url: str = ""


class Adapter(Protocol):
    """One platform at work. Start and stop may be called twice over."""

    @property
    def channel(self) -> Channel: ...

    @property
    def routes(self) -> tuple[Route, ...]:
        """For webhooks; () where there are none."""
        ...

    @property
    def intake(self) -> str:
        """A name for the token whose messages one process at a time may take, without the token; ''
        where any number of processes may, as by webhooks."""
        ...

    async def open(self) -> None:
        """Makes sending possible; it asks the platform nothing. Raises StorageError."""
        ...

    async def start(self) -> None:
        """Begins to take messages. It does not fail because the platform is out of reach, or
        refuses us: it goes on trying, or not, and ``health`` says so."""
        ...

    async def stop(self) -> None:
        """Takes no more messages; sending goes on until ``close``."""
        ...

    async def close(self) -> None: ...

    def health(self) -> Health: ...

    async def check(self) -> Health:
        """Asks the platform once whether it knows us, without ``start``, and takes no message: it
        does not disturb another process that does. The last word before ``close``."""
        ...


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """``build`` is given the values of the platform's variables that are set. It returns None where
    the platform is not configured, and raises ConfigurationError with all faults, one a line."""

    name: str
    variables: tuple[Variable, ...]
    build: Callable[[Mapping[str, str], Site], Adapter | None]
    paces: Paces = Paces()
    terminal: bool = False
    """It takes over the terminal: for ``stillhere chat`` alone, and its user is the operator."""

    def given(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The platform's variables that are set; an empty value counts as not set."""
        return {v.name: environment[v.name] for v in self.variables if environment.get(v.name)}
