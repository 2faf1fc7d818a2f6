"""Which revisions there are, what each asks of the programs that run on it, and how far a database
is; never changes anything but the one fact that says so.

Old and new programs run side by side during a deploy, and an old one comes back when a new one is
rolled back. So each revision names the oldest program that works on it, by the newest revision
which that program knows, and this stands in the database: a program cannot know of revisions that
came after it, but it can read what they say of it.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import sqlalchemy as sa

from core.errors import ConfigurationError
from storage.engine import DialectName, upsert
from storage.tables import facts

FACT = "schema"


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """``oldest`` is the oldest revision whose programs work on this one. ``kinds`` are the events,
    with their version, which programs before it cannot read. ``expendable`` are the tables and
    columns (``table.column``) whose content is made anew by itself."""

    oldest: str
    kinds: Mapping[str, int] = {}
    expendable: frozenset[str] = frozenset()


class Revisions(msgspec.Struct, frozen=True):
    """``names`` from the oldest to the newest. One without terms suits its own programs only."""

    folder: Path
    names: tuple[str, ...]
    terms: Mapping[str, Terms] = {}

    @property
    def newest(self) -> str:
        return self.names[-1]

    def oldest_for(self, revision: str) -> str:
        """Whose programs work on it: all revisions on the way have to allow that."""
        way = self.names[: self.names.index(revision) + 1]
        return max(map(self._oldest, way), key=self.names.index)

    def unknown_to(self, revision: str) -> dict[str, int]:
        """The kinds of events, with their version, that programs of a revision cannot read."""
        later = self.names[self.names.index(revision) + 1 :]
        return {
            kind: version
            for name in later
            if name in self.terms
            for kind, version in self.terms[name].kinds.items()
        }

    @property
    def expendable(self) -> frozenset[str]:
        return frozenset(name for one in self.terms.values() for name in one.expendable)

    def _oldest(self, name: str) -> str:
        return self.terms[name].oldest if name in self.terms else name


_FIRST = (
    *("SessionOpened", "SessionClosed", "SessionSuspended", "SessionReopened", "MessageReceived"),
    *("StrangerRefused", "CommandAnswered", "AccessChanged", "ReminderSet", "ReminderDue"),
    *("TurnStarted", "TurnSteered", "TurnAttempted", "TurnInterrupted", "TurnWaiting", "TurnWoken"),
    *("ModelReplied", "ToolStarted", "ToolFinished", "TurnFinished", "TurnFailed"),
    *("TurnCancelled", "Compacted"),
)
_OF_CONTEXT = (
    *("FilesRead", "FilesLeftOut", "CompactionStarted", "CompactionAttempted", "CompactionFailed"),
    *("CompactionUndone", "TurnUndone", "ResultsShortened", "ContextNarrowed", "WindowLearned"),
    *("StrategyChosen", "Pinned", "Unpinned", "CapNeared", "CapsLifted"),
)
TERMS: Mapping[str, Terms] = {
    "0001": Terms(oldest="0001", kinds=dict.fromkeys(_FIRST, 1)),
    "0002": Terms(oldest="0002", kinds={"SessionSetAside": 1}),
    "0003": Terms(oldest="0003"),
    "0004": Terms(oldest="0004"),
    "0005": Terms(oldest="0005", kinds=dict.fromkeys(_OF_CONTEXT, 1)),
    "0006": Terms(oldest="0005", expendable=frozenset({"leases"})),
}
"""A new kind of event comes with a revision, one that changes no table if need be: this is how it
is known who can read it. Programs before 0005 read no terms, so each of
those names itself."""

OURS = Revisions(
    Path(__file__).with_name("migrations"),
    ("0001", "0002", "0003", "0004", "0005", "0006"),
    TERMS,
)


class _Said(msgspec.Struct, frozen=True):
    """The fact: what the database's newest revision asks."""

    revision: str
    oldest: str


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How far a database is, for one program. ``found`` is None for an empty one, ``oldest`` whose
    programs run on it, None when nobody can say."""

    found: str | None
    oldest: str | None
    needed: str
    newer: bool
    """Than this program, which may run on it all the same."""

    @property
    def current(self) -> bool:
        return self.newer or self.found == self.needed


def standing(connection: sa.Connection, revisions: Revisions = OURS) -> Standing:
    """Raises ConfigurationError when the database is newer than this program, and not for it."""
    found = _revision(connection)
    if found is None or found in revisions.names:
        oldest = revisions.oldest_for(found) if found else None
        return Standing(found=found, oldest=oldest, needed=revisions.newest, newer=False)
    said = _said(connection)
    if said is None or said.revision != found or said.oldest not in revisions.names:
        asked = f", and asks for one that knows {said.oldest}" if said else ""
        raise ConfigurationError(
            f"The database is at revision {found}{asked}; this program knows up to"
            f" {revisions.newest}. Run the newer version; or take the database back by its"
            f" `stillhere migrate --to {revisions.newest}`; or put back the backup that its"
            " upgrade made"
        )
    return Standing(found=found, oldest=said.oldest, needed=revisions.newest, newer=True)


def newer_notes(found: Standing | None) -> tuple[str, ...]:
    """What the operator should know of a program that is older than its database."""
    if found is None or not found.newer:
        return ()
    return (
        f"the database is at revision {found.found}, a newer version's; this one knows up to"
        f" {found.needed}, and may run on it: that takes programs from {found.oldest} on",
    )


def say(connection: sa.Connection, revision: str, revisions: Revisions) -> None:
    """Writes down, for programs that come back, what the revision asks of them."""
    dialect: DialectName = "sqlite" if connection.dialect.name == "sqlite" else "postgresql"
    said = _Said(revision, revisions.oldest_for(revision))
    value = msgspec.json.encode(said).decode()
    connection.execute(upsert(dialect, facts), {"name": FACT, "value": value})


def _said(connection: sa.Connection) -> _Said | None:
    found = connection.execute(sa.select(facts.c.value).where(facts.c.name == FACT)).scalar()
    try:
        return msgspec.json.decode(found, type=_Said) if found else None
    except msgspec.MsgspecError:
        return None


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version = sa.table("alembic_version", sa.column("version_num", sa.Text))
    return connection.execute(sa.select(version.c.version_num)).scalar()
