"""The way out: the outbox, and the sending side of a platform; promises only."""

from collections.abc import Collection
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from core.domain.keys import Address
from core.domain.messages import Attachment, OutboxMessage, Part
from core.ports.sessions import Lease, Platforms

PreviewState = Literal["opened", "sent", "held", "lost"]


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """A row in the hands of who claimed it. ``position`` is its place in the outbox, which it keeps
    whatever becomes of its session; ``attempts`` counts this claim, from 1; ``doubts`` how often
    its outcome was unknown; ``created_at`` is when it was promised.

    ``preview_id`` is the platform's id of the preview message that the row ``edits``, or of the
    preview itself; or empty.
    """

    message: OutboxMessage
    position: int
    attempts: int
    created_at: datetime
    doubts: int = 0
    preview_id: str = ""


class Outbox(Protocol):
    """Messages promised. A row is pending, sending, sent, failed or unknown.

    The rows of one ``address.lane`` are sent in the order of their commits: a row can be claimed
    when it is pending, its ``not_before`` has passed, and no earlier row of its lane is pending,
    sending or unknown. Preview rows are never claimed, and hold up their lane only while sending.
    Who settles a row hands back what was claimed: except for ``sent``, which is a fact whoever
    knows it, it counts only as long as nobody has claimed the row since. All methods raise
    StorageError.
    """

    async def promise(
        self, messages: tuple[OutboxMessage, ...], fact: str, value: str, at: datetime
    ) -> bool:
        """Of the service itself, where a commit is a session's: the messages and the fact (see
        ``Directory``) are stored together, or nothing where the fact has that value already. Of two
        who promise the same at once one is told True."""
        ...

    async def claim(
        self, now: datetime, lease: Lease, limit: int = 100, platforms: Platforms = None
    ) -> tuple[Claimed, ...]:
        """Marks rows sending under the lease, at most one a lane. No two claims share a row."""
        ...

    async def sent(self, row: Claimed, platform_id: str, at: datetime) -> None: ...

    async def retry(self, row: Claimed, not_before: datetime, error: str) -> None:
        """Back to pending: it is proved that nothing was sent, or a double is accepted."""
        ...

    async def give_up(self, row: Claimed, error: str, at: datetime) -> None:
        """Failed for good."""
        ...

    async def unknown(self, row: Claimed, error: str) -> None:
        """The request may have gone out. Of a preview that is out: nobody knows what it shows."""
        ...

    async def unsettled(
        self,
        now: datetime,
        limit: int = 100,
        platforms: Platforms = None,
        beside: Collection[int] = (),
    ) -> tuple[Claimed, ...]:
        """Rows that are unknown, after first making unknown those whose claim's lease is over;
        previews excepted. Oldest first, without those at the positions ``beside``."""
        ...

    async def open_preview(
        self, message: OutboxMessage, lease: Lease, at: datetime
    ) -> tuple[PreviewState, Claimed | None]:
        """Makes the preview's row, sending, where there is none: («opened», the row). Otherwise
        («sent», the row), or («lost», None) when it failed or its outcome is unknown, or when the
        ``lease`` says it is ``held`` and the session is not its owner's. («held», None) and no row
        while an older message of the lane is still to be sent."""
        ...

    async def backlog(self) -> dict[str, int]:
        """How many rows are in each state but «sent», previews excepted."""
        ...

    async def undelivered(self) -> dict[str, dict[str, int]]:
        """As ``backlog``, by platform."""
        ...


class Pace(msgspec.Struct, frozen=True):
    """``burst`` calls at once, then one every ``interval`` seconds."""

    interval: float
    burst: int


class Paces(msgspec.Struct, frozen=True):
    """The defaults suit every platform known: one a second with a person, 20 a minute in a group,
    30 a second in all."""

    chat: Pace = Pace(1.0, 3)
    group: Pace = Pace(3.5, 3)
    bot: Pace = Pace(1 / 30, 30)
    cosmetic_reserve: int = 1
    """Calls of a chat's burst that are left to real messages."""


class Channel(Protocol):
    """The sending side of one platform. Raises TransientError when it is proved that nothing was
    sent, PermanentError when the platform says never, UnknownOutcomeError for all the rest."""

    def render(self, text: str) -> tuple[Part, ...]:
        """Pure. Markdown to the parts that the platform accepts, in order; () for no visible text.
        Never raises."""
        ...

    def preview(self, text: str) -> Part | None:
        """Pure. A half-arrived answer as one part; None for no visible text. Never raises."""
        ...

    async def send(self, message: OutboxMessage) -> str:
        """Returns the platform's id of the new message."""
        ...

    async def edit(self, address: Address, platform_id: str, part: Part) -> None:
        """An edit that changes nothing is a success."""
        ...

    async def typing(self, address: Address) -> None: ...

    async def lookup(self, message: OutboxMessage, since: datetime) -> str | None:
        """Settles an unknown send: the platform's id where it can be found out that it arrived,
        None where it must be sent again, which is done soon or asked again. It was promised at
        ``since``, by our clock, and is nowhere before that."""
        ...

    async def fetch(self, attachment: Attachment, limit: int) -> bytes:
        """What came with a message; PermanentError when it is gone or larger than ``limit`` bytes.
        It may be asked for as often as one likes."""
        ...
