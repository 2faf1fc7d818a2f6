"""Whether a commit may be stored, decided on values alone; never touches a database."""

from collections.abc import Iterable, Mapping

import msgspec

from core.errors import ConflictError, DuplicateError, IllegalEventError, LeaseLostError
from core.ports import AccessGrant, Commit, InboxId
from storage.codec import micros


class Head(msgspec.Struct, frozen=True):
    """Where a key's log ends, and who runs it; times in microseconds, 0 for no lease."""

    seq: int = 0
    session_id: str = ""
    open_turn: bool = False
    owner: str = ""
    epoch: int = 0
    lease_until: int = 0
    updated_at: int = 0
    owed: int = 0


class Ground:
    """What commits are measured against: each that is admitted changes it for the next one."""

    def __init__(
        self,
        heads: Mapping[str, Head] | None = None,
        inbox: Iterable[InboxId] = (),
        owner: tuple[str, str] | None = None,
        streams: Mapping[str, int] | None = None,
    ) -> None:
        """``streams`` are the numbers of the logs that are there before."""
        self.streams: Mapping[str, int] = {} if streams is None else streams
        self.before = heads or {}
        self.heads = dict(self.before)
        self.inbox = set(inbox)
        self.owner = owner

    def admit(self, commit: Commit) -> None:
        """Raises what ``SessionStore.commit`` names; nothing has changed then."""
        if commit.inbox is not None and commit.inbox in self.inbox:
            raise DuplicateError(f"{commit.key}: {commit.inbox} was taken before")
        number = self.streams.get(commit.key, 0)
        if commit.stream not in (None, number):
            raise ConflictError(f"{commit.key}: log {number} is there, not {commit.stream}")
        head = _advance(self.heads.get(commit.key, Head()), commit)
        owner = _granted(self.owner, commit.access)
        self.heads[commit.key] = head
        self.owner = owner
        if commit.inbox is not None:
            self.inbox.add(commit.inbox)


def _advance(head: Head, commit: Commit) -> Head:
    if commit.expected_seq != head.seq:
        raise ConflictError(f"{commit.key}: at {head.seq}, not at {commit.expected_seq}")
    for place, recorded in enumerate(commit.log, commit.expected_seq + 1):
        if recorded.seq != place:
            raise IllegalEventError(f"{commit.key}: event {recorded.seq} in the place of {place}")
    owner, until = _lease(head, commit)
    return Head(
        seq=head.seq + len(commit.log),
        session_id=commit.session_id,
        open_turn=commit.open_turn,
        owner=owner if commit.open_turn else "",
        epoch=head.epoch + (owner != head.owner),
        lease_until=until if commit.open_turn else 0,
        updated_at=micros(commit.at),
        owed=commit.owed,
    )


def _lease(head: Head, commit: Commit) -> tuple[str, int]:
    """Whose it is afterwards, and until when; nobody's where it is let go."""
    lease, now = commit.lease, micros(commit.at)
    if lease is None:
        return head.owner, head.lease_until
    if head.owner != lease.owner and (lease.held or (head.owner and head.lease_until > now)):
        raise LeaseLostError(f"{commit.key}: {head.owner or 'nobody'} runs it")
    until = micros(lease.until)
    return (lease.owner, until) if until > now else ("", 0)


def _granted(
    owner: tuple[str, str] | None, grants: Iterable[AccessGrant]
) -> tuple[str, str] | None:
    for grant in grants:
        person = (grant.platform, grant.user)
        if grant.role == "owner":
            if owner not in (None, person):
                raise ConflictError("there is an owner already")
            owner = person
        elif owner == person:
            owner = None
    return owner
