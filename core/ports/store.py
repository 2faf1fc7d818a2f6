"""Everything else that one database keeps, and all of it together; promises only."""

from collections.abc import Collection, Mapping
from datetime import date, datetime
from typing import Protocol

import msgspec

from core.domain.events import Role
from core.domain.ledger import Ledger
from core.domain.messages import Usage
from core.domain.outputs import AccessGrant, Timer
from core.domain.spending import Meter, Spent
from core.ports.delivery import Outbox
from core.ports.sessions import Hear, Lease, Platforms, SessionStore


class Timers(Protocol):
    async def due(
        self, now: datetime, limit: int = 100, platforms: Platforms = None
    ) -> tuple[Timer, ...]:
        """Earliest first. They stay until a commit moves or clears them. Raises StorageError."""
        ...

    async def clear(self, timer: Timer) -> None:
        """For a timer that no commit answers; one that has been moved since stays. Raises
        StorageError."""
        ...


class Unowed(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is pending, though its session does not owe all of what is."""

    platform: str
    update_id: str
    key: str
    since: datetime


class Directory(Protocol):
    """Who may talk to the agent, and small facts of the whole service. Raises StorageError."""

    async def role(self, platform: str, user: str) -> Role | None: ...

    async def grants(self) -> tuple[AccessGrant, ...]: ...

    async def fact(self, name: str) -> str | None: ...

    async def facts(self, start: str) -> Mapping[str, str]:
        """Those whose names start so, by name."""
        ...

    async def set_fact(self, name: str, value: str) -> None:
        """Returns when it is on disk; so it also proves that the database can be written."""
        ...

    async def first_fact(self, name: str, value: str) -> str:
        """Sets it where there is none; returns what is there, the same to all who ask at once."""
        ...

    async def disown(self, facts: Mapping[str, str]) -> None:
        """Nobody is the owner any more, and these facts are set, together."""
        ...

    async def forget_facts(self, names: Collection[str]) -> None: ...

    async def ledger(self) -> dict[str, Ledger]:
        """By platform; all numbers are of one moment. It costs what is open, not what is over."""
        ...

    async def waiting_since(self) -> dict[str, datetime]:
        """By platform, when the oldest message was taken that a session still owes an answer; of
        the sessions that owe, the 200 that were longest without a commit count. It costs what is
        open, not what is over."""
        ...

    async def unowed(self, limit: int = 20) -> tuple[Unowed, ...]:
        """Oldest first: messages that are pending in the inbox under keys that owe fewer. It reads
        the whole inbox."""
        ...


class Spending(Protocol):
    """What models cost, as the commits that spent it say; by days of UTC. Raises StorageError."""

    async def meter(self, day: date, platform: str, person: str) -> Meter:
        """The marks are the person's and the whole service's."""
        ...

    async def spent(self, platform: str, person: str, first: date, last: date) -> Usage:
        """From ``first`` to ``last``, both included."""
        ...

    async def spent_most(self, day: date, limit: int = 5) -> tuple[Spent, ...]:
        """Those who spent most; most dollars first, then most tokens."""
        ...

    async def spent_in_all(self) -> Mapping[str, Usage]:
        """By platform, since there is a database. It does not cost more with the days."""
        ...


class Files(Protocol):
    """Pictures as models are shown them, once however often they come. Raises StorageError."""

    async def keep_file(self, data: bytes) -> str:
        """Returns its SHA-256 in hex, when it is on disk: whatever names it is stored later."""
        ...

    async def file(self, sha: str) -> bytes | None:
        """None for one that is not there, or is not any more what it was."""
        ...


class Leases(Protocol):
    """Of what one process at a time may do, such as taking the messages of a bot. Raises
    StorageError."""

    async def take_lease(self, name: str, lease: Lease, now: datetime) -> bool:
        """Takes it, or keeps it, for the owner; False while another's is not over."""
        ...

    async def release(self, name: str, owner: str) -> None:
        """Lets it go, if it is the owner's; who waits for it is told."""
        ...


class Notifications(Protocol):
    async def listen(self, hear: Hear) -> None:
        """Until it is cancelled: tells what other processes do, soon after it is on disk. It is a
        convenience, that nothing may rest on: some are lost while the database is away. Never
        raises."""
        ...


class Store(
    SessionStore, Outbox, Timers, Directory, Spending, Files, Leases, Notifications, Protocol
):
    """One database behind all of them, so that a commit can span them."""

    async def close(self) -> None: ...
