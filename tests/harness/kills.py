"""Where a process is killed, and what a run passed by; it kills nothing itself."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

Kind = Literal["write", "call"]
Form = Literal["alone", "two replicas", "one paused"]
"""One process; two on one database, one of which is killed; or one of which stands still."""
OTHERS = 100
"""The lives of a second process begin with 101, so that a life's number says whose it is."""


def whose(life: int) -> int:
    """The number after which the lives of its process are counted."""
    return life // OTHERS * OTHERS


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """The ``number``-th write, or counted outside call, of the ``life``-th start of the service,
    both from 1: before it has an effect, or after it and before anyone is told."""

    life: int
    kind: Kind
    number: int
    after: bool
    what: str = ""

    def __str__(self) -> str:
        when = "after" if self.after else "before"
        return f"{when} {self.kind} {self.life}.{self.number} ({self.what})"


class Cell(msgspec.Struct, frozen=True):
    """One run of a scenario with these kills; most have one."""

    kills: tuple[Kill, ...] = ()

    def __str__(self) -> str:
        return ", then ".join(map(str, self.kills)) or "no kill"

    def of(self, life: int, kind: Kind) -> Kill | None:
        return next((k for k in self.kills if k.life == life and k.kind == kind), None)


NO_KILL = Cell()


class Write(msgspec.Struct, frozen=True):
    """One line of a life's trace: a write begins, or is ``done``. ``name`` is the store's method,
    ``row`` the outbox row of a message that is new to its chat, where the write is about one. The
    opening of a preview is done when it was out before. ``at`` is Unix time."""

    name: str
    row: str = ""
    done: bool = False
    at: float = 0.0


def kills_of(life: int, kind: Kind, passed: Sequence[str]) -> Iterable[Kill]:
    """Both sides of everything of that kind that the life passed by. What a poll brings can only
    be cut off after it was fetched: before it nothing happens."""
    for number, what in enumerate(passed, 1):
        for after in (True,) if what == "getUpdates" else (False, True):
            yield Kill(life=life, kind=kind, number=number, after=after, what=what)


def may_double(cell: Cell, writes: Mapping[int, Sequence[Write]]) -> int:
    """How many messages may have come twice: those that were claimed, new to their chat, and not
    settled when their process was killed. Telegram cannot be asked whether they arrived."""
    return sum(bool(_in_doubt(writes.get(life, ()))) for life in {k.life for k in cell.kills})


def _in_doubt(writes: Sequence[Write]) -> set[str]:
    """A row that was put back and claimed again is in doubt again."""
    doubtful: set[str] = set()
    for write in writes:
        if write.done:
            doubtful.discard(write.row)
        elif write.row and write.name in ("claim", "open_preview"):
            doubtful.add(write.row)
    return doubtful


def overdue(writes: Sequence[Write], lease: float) -> set[str]:
    """Rows that were in hand for longer than their claim lasts, which is a lease for a preview and
    two for a message: another process may have sent them meanwhile."""
    late: set[str] = set()
    since: dict[str, float] = {}
    for write in writes:
        if write.done:
            began = since.pop(write.row, write.at)
            late |= {write.row} if write.at - began >= lease else set[str]()
        elif write.row and write.name in ("claim", "open_preview"):
            since[write.row] = write.at + (lease if write.name == "claim" else 0.0)
    return late


def doubts(writes: Mapping[int, Sequence[Write]], lease: float | None = None) -> Counter[str]:
    """By session key, how many messages may have come twice: those that a life had not settled when
    it ended, and those that it wrote down as unknown. With a ``lease``, where other processes take
    what is held for longer, also what is ``overdue``."""
    rows: list[str] = []
    for passed in writes.values():
        known = [write for write in passed if write.name != "unknown"]
        rows += _in_doubt(known) | (overdue(known, lease) if lease else set[str]())
    return Counter(row.partition("@")[0] for row in rows)
