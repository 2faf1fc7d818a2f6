"""A commit as rows, ready to be written; never knows which database will hold them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from core.domain.events import Recorded
from core.domain.messages import OutboxMessage, Part
from core.domain.spending import Mark, Spent
from core.domain.state import SCHEMA_VERSION, SessionState
from core.errors import IllegalEventError
from core.ports import AccessGrant, Claimed, Commit, InboxId, Lease, Outcome, Timer
from storage.codec import Codec, clean, message, message_text, micros, moment, snapshot_text

Row = dict[str, Any]

NANO = 1_000_000_000
MOST_TOKENS = 1_000_000_000
MOST_DOLLARS = 1_000_000.0


class Prepared(msgspec.Struct, frozen=True):
    """Rows by table, in order. The stream's number is filled in when it is known."""

    commit: Commit
    events: list[Row]
    inbox: list[Row]
    settled: list[Row]
    outbox: list[Row]
    timers: list[Row]
    cleared: tuple[str, ...]
    access: list[Row]
    artifacts: list[Row]
    snapshot: Row | None
    spent: list[Row]
    marks: list[Row]


def prepare(commit: Commit, codec: Codec) -> Prepared:
    """Raises IllegalEventError for what could not be read back."""
    at = micros(commit.at)
    settled: dict[InboxId, Outcome] = {
        clean_id(inbox_id): outcome for inbox_id, outcome in commit.settled
    }
    inbox: list[Row] = []
    if commit.inbox is not None:
        taken = clean_id(commit.inbox)
        outcome = settled.pop(taken, "pending")
        inbox.append(
            {
                **msgspec.structs.asdict(taken),
                "key": commit.key,
                "seq": commit.expected_seq + 1,
                "outcome": outcome,
                "at": at,
            }
        )
        commit = msgspec.structs.replace(commit, inbox=taken)
    return Prepared(
        commit=commit,
        events=[_event(codec, recorded) for recorded in commit.log],
        inbox=inbox,
        settled=[settled_row(inbox_id, outcome) for inbox_id, outcome in settled.items()],
        outbox=[outbox_row(made, at) for made in commit.outbox],
        timers=[_timer(timer) for timer in commit.timers],
        cleared=tuple(clean(timer_id) for timer_id in commit.cleared),
        access=[_grant(grant) for grant in commit.access],
        artifacts=[{"id": clean(one.id), "text": clean(one.text)} for one in commit.artifacts],
        snapshot=None if commit.snapshot is None else _snapshot(commit.snapshot),
        spent=[spent_row(spent) for spent in commit.spent],
        marks=[_mark(mark) for mark in commit.marks],
    )


def clean_id(inbox_id: InboxId) -> InboxId:
    return InboxId(clean(inbox_id.platform), clean(inbox_id.account), clean(inbox_id.update_id))


def settled_row(inbox_id: InboxId, outcome: Outcome) -> Row:
    return {
        "of_platform": inbox_id.platform,
        "of_account": inbox_id.account,
        "of_update_id": inbox_id.update_id,
        "outcome": outcome,
    }


def outbox_row(made: OutboxMessage, at: int) -> Row:
    """A row that is pending; every row has every column, so that many go in one statement."""
    return {
        "id": clean(made.id),
        "key": clean(made.key),
        "lane": made.address.lane,
        "kind": made.kind,
        "state": "pending",
        "holds": made.kind != "preview",
        "not_before": 0,
        "owner": "",
        "lease_until": 0,
        "attempts": 0,
        "platform_id": "",
        "edits": clean(made.edits),
        "body": message_text(made),
        "error": "",
        "created_at": at,
        "ended_at": 0,
        "doubts": 0,
    }


def preview_row(made: OutboxMessage, lease: Lease, at: datetime) -> Row:
    """Its words are never kept: what is asked of the platform later is whether it arrived."""
    until = micros(lease.until)
    wordless = msgspec.structs.replace(made, part=Part(text="", plain=""))
    return {
        **outbox_row(wordless, at=micros(at)),
        "kind": "preview",
        "state": "sending",
        "holds": True,
        "owner": lease.owner,
        "lease_until": until,
        "attempts": 1,
    }


def preview_claimed(made: OutboxMessage, row: Mapping[str, Any]) -> Claimed:
    return Claimed(
        message=made,
        position=row["position"],
        attempts=row["attempts"],
        created_at=moment(row["created_at"]),
        preview_id=row["platform_id"],
    )


def claimed(row: Mapping[str, Any], preview_id: str | None, attempts: int) -> Claimed:
    """The row's id counts, should it have been set aside since."""
    made = msgspec.structs.replace(message(row["body"]), id=row["id"])
    return Claimed(
        message=made,
        position=row["position"],
        attempts=attempts,
        created_at=moment(row["created_at"]),
        doubts=row["doubts"],
        preview_id=preview_id or "",
    )


def timer(row: Row) -> Timer:
    values: Row = {**row, "due": moment(row["due"])}
    return Timer(**values)


def _event(codec: Codec, recorded: Recorded) -> Row:
    return {"stream": 0, **msgspec.structs.asdict(codec.event_row(recorded))}


def _timer(timer: Timer) -> Row:
    return {
        "id": clean(timer.id),
        "key": timer.key,
        "kind": timer.kind,
        "due": micros(timer.due),
        "data": clean(timer.data),
    }


def _grant(grant: AccessGrant) -> Row:
    return {"platform": clean(grant.platform), "user": clean(grant.user), "role": grant.role}


def spent_row(spent: Spent) -> Row:
    """A number that no model can cost is not believed: sums have to stay in a column."""
    usage = spent.usage
    return {
        "day": spent.day.toordinal(),
        "platform": clean(spent.platform),
        "person": clean(spent.person),
        "prompt": min(usage.prompt, MOST_TOKENS),
        "completion": min(usage.completion, MOST_TOKENS),
        "cached": min(usage.cached, MOST_TOKENS),
        "nanodollars": round(min(usage.cost, MOST_DOLLARS) * NANO),
    }


def _mark(mark: Mark) -> Row:
    return {
        "day": mark.day.toordinal(),
        "platform": clean(mark.platform),
        "person": clean(mark.person),
        "what": mark.what,
    }


def _snapshot(state: SessionState) -> Row | None:
    """None when it cannot be stored: it is a cache, and the log is not."""
    try:
        data = snapshot_text(state)
    except IllegalEventError:
        return None
    return {"stream": 0, "seq": state.seq, "version": SCHEMA_VERSION, "data": data}
