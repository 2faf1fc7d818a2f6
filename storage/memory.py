"""The store without a disk, shipped for tests; keeps every promise but durability."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime
from itertools import islice

from msgspec.structs import asdict, replace

from core.domain.events import Recorded, Role
from core.domain.keys import aside_key, aside_name, key_of_aside, platform_of, platform_of_lane
from core.domain.ledger import Ledger
from core.domain.messages import OutboxMessage, Usage
from core.domain.spending import Meter, Spent
from core.errors import ConflictError, StillhereError, StorageError
from core.ports import (
    AccessGrant,
    Claimed,
    Commit,
    Hear,
    InboxId,
    Lease,
    Notification,
    Platforms,
    PreviewState,
    RawHead,
    RawRow,
    Stored,
    StreamInfo,
    Timer,
    Unowed,
)
from storage.checks import Ground, Head
from storage.codec import Codec, EventRow, clean, micros, moment, snapshot
from storage.files import sha_of
from storage.ledger import (
    MESSAGE,
    MOST_WAITING,
    Moves,
    added_up,
    counted,
    earliest,
    settled_id,
)
from storage.listening import news_of
from storage.raw import SNAPSHOT
from storage.reads import these, whole_log
from storage.rows import (
    Prepared,
    Row,
    claimed,
    outbox_row,
    prepare,
    preview_claimed,
    preview_row,
    timer,
)
from storage.spending_memory import SpendingInMemory


class MemoryStore:
    """``core.ports.Store``. Rows are kept encoded, so that only what can be stored gets in."""

    def __init__(self, codec: Codec | None = None) -> None:
        self._codec = codec or Codec()
        self._numbers: dict[str, int] = {}
        """Those of the logs, by key."""
        self._last_number = 0
        self._ground = Ground(streams=self._numbers)
        self._logs: dict[str, list[EventRow]] = {}
        self._snapshots: dict[str, Row] = {}
        self._inbox: dict[InboxId, Row] = {}
        self._counts: dict[str, Ledger] = {}
        self._outbox: dict[str, Row] = {}
        self._places: dict[int, Row] = {}
        """The rows of the outbox once more, by position."""
        self._timers: dict[str, Row] = {}
        self._access: dict[tuple[str, str], Role] = {}
        self._artifacts: dict[str, str] = {}
        self._facts: dict[str, str] = {}
        self._files: dict[str, bytes] = {}
        self._leases: dict[str, Lease] = {}
        self._hearers: list[Hear] = []
        self._spending = SpendingInMemory()
        self._closed = False

    async def close(self) -> None:
        self._closed = True

    async def load(self, key: str) -> Stored:
        await self._turn()
        head = self._ground.heads.get(key, Head())
        row = self._snapshots.get(key)
        state = None
        if row is not None and row["seq"] <= head.seq:
            state = snapshot(key, row["seq"], row["version"], row["data"])
        log = self._log(key, 1 if state is None else state.seq + 1, head.seq)
        return Stored(state, log, self._numbers.get(key, 0))

    async def events(
        self, key: str, first: int = 1, last: int | None = None
    ) -> tuple[Recorded, ...]:
        await self._turn()
        end = self._ground.heads.get(key, Head()).seq
        return self._log(key, max(first, 1), end if last is None else min(last, end))

    def _log(self, key: str, first: int, last: int) -> tuple[Recorded, ...]:
        rows = self._logs.get(key, [])[first - 1 : max(last, 0)]
        return whole_log(self._codec, key, rows, (first, last))

    async def bodies(self, key: str, seqs: tuple[int, ...]) -> tuple[Recorded, ...]:
        await self._turn()
        wanted = sorted(set(seqs))
        rows = [row for row in self._logs.get(key, []) if row.seq in set(wanted)]
        return these(self._codec, key, rows, wanted)

    async def commit(self, commit: Commit) -> int:
        prepared = prepare(commit, self._codec)
        await self._turn()
        self._ground.before = {commit.key: self._ground.heads.get(commit.key, Head())}
        self._ground.admit(prepared.commit)
        number = self._store(prepared)
        self._tell(news_of(self._ground, [prepared]))
        return number

    def _store(self, prepared: Prepared) -> int:
        key = prepared.commit.key
        if key not in self._numbers:
            self._last_number += 1
            self._numbers[key] = self._last_number
        settled = [name for row in prepared.settled if (name := settled_id(row)) in self._inbox]
        moves = Moves({name: self._inbox[name]["outcome"] for name in settled})
        moves.add(prepared)
        self._count(moves)
        log = self._logs.setdefault(key, [])
        for row in prepared.events:
            log.append(EventRow(**{name: row[name] for name in EventRow.__struct_fields__}))
        for row in prepared.inbox:
            taken = InboxId(row["platform"], row["account"], row["update_id"])
            self._inbox[taken] = row
        for row in prepared.settled:
            if (name := settled_id(row)) in self._inbox:
                self._inbox[name]["outcome"] = row["outcome"]
        for row in prepared.outbox:
            self._promise(row)
        for timer_id in prepared.cleared:
            self._timers.pop(timer_id, None)
        self._timers.update((row["id"], row) for row in prepared.timers)
        self._access.update(
            ((row["platform"], row["user"]), row["role"]) for row in prepared.access
        )
        for row in prepared.artifacts:
            self._artifacts.setdefault(row["id"], row["text"])
        self._spending.add(prepared)
        if prepared.snapshot is not None:
            self._snapshots[key] = prepared.snapshot
        return self._numbers[key]

    def _promise(self, row: Row) -> None:
        row["position"] = len(self._places) + 1
        self._places[row["position"]] = self._outbox[row["id"]] = row

    def _count(self, moves: Moves) -> None:
        self._counts = added_up([*self._counts.items(), *map(counted, moves.rows())])

    async def renew(self, keys: tuple[str, ...], lease: Lease) -> dict[str, int]:
        await self._turn()
        heads = self._ground.heads
        kept = tuple(key for key in keys if key in heads and heads[key].owner == lease.owner)
        for key in kept:
            heads[key] = replace(heads[key], lease_until=micros(lease.until))
        return {key: heads[key].seq for key in kept}

    async def abandoned(
        self, now: datetime, limit: int = 100, platforms: Platforms = None
    ) -> tuple[str, ...]:
        await self._turn()
        over = [
            (head.lease_until, key)
            for key, head in self._ground.heads.items()
            if head.open_turn and head.lease_until <= micros(now) and _of_key(key, platforms)
        ]
        return tuple(key for _, key in sorted(over, key=lambda one: one[0])[:limit])

    async def untaken(self, keys: tuple[str, ...]) -> frozenset[str]:
        await self._turn()
        heads = {key: self._ground.heads.get(key, Head()) for key in keys}
        return frozenset(key for key, head in heads.items() if head.open_turn and not head.owner)

    async def streams(self, prefix: str = "", limit: int = 1000) -> tuple[StreamInfo, ...]:
        await self._turn()
        found = [
            StreamInfo(
                key=key,
                seq=head.seq,
                session_id=head.session_id,
                open_turn=head.open_turn,
                updated_at=moment(head.updated_at),
            )
            for key, head in reversed(self._ground.heads.items())
            if key.startswith(prefix)
        ]
        return tuple(sorted(found, key=lambda info: info.updated_at, reverse=True)[:limit])

    async def set_aside(
        self, key: str, stream: int, at: datetime, first: Commit | None = None
    ) -> str:
        follows = None if first is None else prepare(first, self._codec)
        await self._turn()
        if self._numbers.get(key) != stream:
            raise ConflictError(f"{key}: log {stream} is not there any more")
        name, kept_as = aside_name(at), aside_key(key, at)
        head = self._ground.heads.pop(key)
        del self._numbers[key]
        if follows is not None:
            try:
                self._ground.admit(follows.commit)
            except StillhereError:
                self._ground.heads[key], self._numbers[key] = head, stream
                raise
        ended = Head(seq=head.seq, session_id=head.session_id, epoch=head.epoch)
        self._ground.heads[kept_as] = replace(ended, updated_at=micros(at))
        self._numbers[kept_as] = stream
        self._logs[kept_as] = self._logs.pop(key, [])
        if key in self._snapshots:
            self._snapshots[kept_as] = self._snapshots.pop(key)
        for row in [row for row in self._timers.values() if row["key"] == key]:
            del self._timers[row["id"]]
        for row in [row for row in self._outbox.values() if row["key"] == key]:
            edits = row["edits"] and f"{name}:{row['edits']}"
            row.update(id=f"{name}:{row['id']}", key=kept_as, edits=edits)
        self._outbox = {row["id"]: row for row in self._outbox.values()}
        moves = Moves({})
        for row in [row for row in self._inbox.values() if row["key"] == key]:
            row["key"] = kept_as
            if row["outcome"] == "pending":
                row["outcome"] = "failed"
                moves.move(row["platform"], key, "failed")
        self._count(moves)
        if follows is not None:
            self._store(follows)
        return kept_as

    async def asides(self) -> tuple[str, ...]:
        await self._turn()
        return tuple(key for key in self._ground.heads if key_of_aside(key) != key)

    async def raw_head(self, key: str) -> RawHead | None:
        await self._turn()
        head = self._ground.heads.get(key)
        if head is None:
            return None
        stream = {"key": key, **asdict(head)}
        snapshot_row = self._snapshots.get(key)
        kept = None if snapshot_row is None else {n: snapshot_row[n] for n in SNAPSHOT}
        log = self._logs.get(key, [])
        return RawHead(stream, kept, log[-1].seq if log else 0, self._numbers[key])

    async def raw_events(self, key: str, after: int | None, limit: int) -> tuple[RawRow, ...]:
        await self._turn()
        rows = (row for row in self._logs.get(key, []) if after is None or row.seq > after)
        return tuple(asdict(row) for row in islice(rows, limit))

    async def artifact(self, artifact_id: str) -> str | None:
        await self._turn()
        return self._artifacts.get(clean(artifact_id))

    async def keep_file(self, data: bytes) -> str:
        await self._turn()
        self._files[sha := sha_of(data)] = data
        return sha

    async def file(self, sha: str) -> bytes | None:
        await self._turn()
        return self._files.get(sha)

    async def promise(
        self, messages: tuple[OutboxMessage, ...], fact: str, value: str, at: datetime
    ) -> bool:
        rows = [outbox_row(message, micros(at)) for message in messages]
        await self._turn()
        if self._facts.get(clean(fact)) == clean(value):
            return False
        self._facts[clean(fact)] = clean(value)
        for row in rows:
            self._promise(row)
        return True

    async def claim(
        self, now: datetime, lease: Lease, limit: int = 100, platforms: Platforms = None
    ) -> tuple[Claimed, ...]:
        await self._turn()
        first: dict[str, Row] = {}
        for row in self._outbox.values():
            if row["holds"]:
                first.setdefault(row["lane"], row)
        ready = [
            row
            for row in first.values()
            if row["state"] == "pending"
            and row["not_before"] <= micros(now)
            and _of_lane(row["lane"], platforms)
        ]
        for row in ready[:limit]:
            row.update(
                state="sending",
                owner=lease.owner,
                lease_until=micros(lease.until),
                attempts=row["attempts"] + 1,
            )
        return tuple(self._claimed(row) for row in ready[:limit])

    def _claimed(self, row: Row) -> Claimed:
        preview = self._outbox.get(row["edits"], {})
        preview_id = preview["platform_id"] if preview.get("state") == "sent" else ""
        return claimed(row, preview_id, row["attempts"])

    async def sent(self, row: Claimed, platform_id: str, at: datetime) -> None:
        await self._turn()
        kept = self._places.get(row.position)
        if kept is not None and kept["state"] != "sent":
            changes: Row = {"holds": False, "body": None, "error": "", "ended_at": micros(at)}
            kept.update(state="sent", platform_id=clean(platform_id), **changes)

    async def retry(self, row: Claimed, not_before: datetime, error: str) -> None:
        await self._change(
            row,
            ("sending", "unknown"),
            state="pending",
            not_before=micros(not_before),
            error=clean(error),
        )

    async def give_up(self, row: Claimed, error: str, at: datetime) -> None:
        changes: Row = {"holds": False, "error": clean(error), "ended_at": micros(at)}
        await self._change(row, ("sending", "unknown"), state="failed", **changes)

    async def unknown(self, row: Claimed, error: str) -> None:
        allowed = ("sending", "sent") if row.message.kind == "preview" else ("sending",)
        kept = self._places.get(row.position)
        holds = row.message.kind != "preview" or (kept is not None and kept["state"] == "sending")
        await self._change(row, allowed, 1, state="unknown", holds=holds, error=clean(error))

    async def _change(
        self, row: Claimed, allowed: tuple[str, ...], doubts: int = 0, **changes: object
    ) -> None:
        await self._turn()
        kept = self._places.get(row.position)
        if kept is not None and kept["state"] in allowed and kept["attempts"] == row.attempts:
            kept["doubts"] += doubts
            kept.update({"holds": kept["kind"] != "preview", **changes})

    async def unsettled(
        self,
        now: datetime,
        limit: int = 100,
        platforms: Platforms = None,
        beside: Collection[int] = (),
    ) -> tuple[Claimed, ...]:
        await self._turn()
        for row in self._outbox.values():
            if row["state"] == "sending" and row["lease_until"] <= micros(now):
                row.update(state="unknown", holds=True, doubts=row["doubts"] + 1)
        open_rows = [
            row
            for row in self._outbox.values()
            if row["holds"]
            and row["state"] == "unknown"
            and row["position"] not in beside
            and _of_lane(row["lane"], platforms)
        ]
        return tuple(self._claimed(row) for row in open_rows[:limit])

    async def open_preview(
        self, message: OutboxMessage, lease: Lease, at: datetime
    ) -> tuple[PreviewState, Claimed | None]:
        row = preview_row(message, lease, at)
        await self._turn()
        if lease.held and self._ground.heads.get(message.key, Head()).owner != lease.owner:
            return "lost", None
        old = self._outbox.get(row["id"])
        if old is not None and old["state"] == "sent":
            return "sent", preview_claimed(message, old)
        if old is not None and old["state"] != "pending":
            return "lost", None
        others = (one for one in self._outbox.values() if one["id"] != row["id"])
        if any(one["holds"] and one["lane"] == row["lane"] for one in others):
            return "held", None
        if old is None:
            self._promise(row)
        else:
            kept = {name: old[name] for name in ("position", "created_at")}
            old.update({**row, **kept, "attempts": old["attempts"] + 1})
        return "opened", preview_claimed(message, old or row)

    async def backlog(self) -> dict[str, int]:
        await self._turn()
        return dict(
            Counter(
                row["state"]
                for row in self._outbox.values()
                if row["state"] != "sent" and row["kind"] != "preview"
            )
        )

    async def undelivered(self) -> dict[str, dict[str, int]]:
        await self._turn()
        found: dict[str, dict[str, int]] = {}
        for row in self._outbox.values():
            if row["state"] != "sent" and row["kind"] != "preview":
                states = found.setdefault(platform_of_lane(row["lane"]), {})
                states[row["state"]] = states.get(row["state"], 0) + 1
        return found

    async def due(
        self, now: datetime, limit: int = 100, platforms: Platforms = None
    ) -> tuple[Timer, ...]:
        await self._turn()
        rows = [
            row
            for row in self._timers.values()
            if row["due"] <= micros(now) and _of_key(row["key"], platforms)
        ]
        return tuple(map(timer, sorted(rows, key=lambda row: (row["due"], row["id"]))[:limit]))

    async def clear(self, timer: Timer) -> None:
        await self._turn()
        row = self._timers.get(clean(timer.id))
        if row is not None and row["due"] == micros(timer.due):
            del self._timers[row["id"]]

    async def role(self, platform: str, user: str) -> Role | None:
        await self._turn()
        return self._access.get((clean(platform), clean(user)))

    async def grants(self) -> tuple[AccessGrant, ...]:
        await self._turn()
        return tuple(AccessGrant(*who, role) for who, role in sorted(self._access.items()))

    async def fact(self, name: str) -> str | None:
        await self._turn()
        return self._facts.get(clean(name))

    async def facts(self, start: str) -> Mapping[str, str]:
        await self._turn()
        wanted = clean(start)
        return {name: value for name, value in self._facts.items() if name.startswith(wanted)}

    async def set_fact(self, name: str, value: str) -> None:
        await self._turn()
        self._facts[clean(name)] = clean(value)

    async def take_lease(self, name: str, lease: Lease, now: datetime) -> bool:
        await self._turn()
        there = self._leases.get(name)
        if there is not None and there.owner != lease.owner and there.until > now:
            return False
        self._leases[name] = lease
        return True

    async def release(self, name: str, owner: str) -> None:
        await self._turn()
        there = self._leases.get(name)
        if there is not None and there.owner == owner:
            del self._leases[name]
            self._tell([Notification("lease", name)])

    async def listen(self, hear: Hear) -> None:
        """Of all that is stored: who shares it has no name."""
        self._hearers.append(hear)
        try:
            hear(Notification("all"))
            await asyncio.Event().wait()
        finally:
            self._hearers.remove(hear)

    def _tell(self, news: Iterable[Notification]) -> None:
        for one in news:
            for hear in tuple(self._hearers):
                hear(one)

    async def first_fact(self, name: str, value: str) -> str:
        await self._turn()
        return self._facts.setdefault(clean(name), clean(value))

    async def disown(self, facts: Mapping[str, str]) -> None:
        await self._turn()
        self._access = {who: role for who, role in self._access.items() if role != "owner"}
        self._ground.owner = None
        self._facts.update((clean(name), clean(value)) for name, value in facts.items())

    async def forget_facts(self, names: Collection[str]) -> None:
        await self._turn()
        for name in names:
            self._facts.pop(clean(name), None)

    async def ledger(self) -> dict[str, Ledger]:
        await self._turn()
        owed = (
            (platform_of(key), Ledger(pending=head.owed))
            for key, head in self._ground.heads.items()
            if head.owed
        )
        return added_up([*self._counts.items(), *owed])

    async def waiting_since(self) -> dict[str, datetime]:
        await self._turn()
        owing = [(key, head) for key, head in self._ground.heads.items() if head.owed]
        owing = sorted(owing, key=lambda one: one[1].updated_at)[:MOST_WAITING]
        return earliest((key, self._taken_at(key, head)) for key, head in owing)

    def _taken_at(self, key: str, head: Head) -> int:
        taken = [row.at for row in self._logs.get(key, ()) if row.type == MESSAGE]
        return taken[-head.owed] if len(taken) >= head.owed else head.updated_at

    async def unowed(self, limit: int = 20) -> tuple[Unowed, ...]:
        await self._turn()
        pending = [row for row in self._inbox.values() if row["outcome"] == "pending"]
        many = Counter(row["key"] for row in pending)
        heads = self._ground.heads
        found = [
            Unowed(
                platform=row["platform"],
                update_id=row["update_id"],
                key=row["key"],
                since=moment(row["at"]),
            )
            for row in sorted(pending, key=lambda row: (row["at"], row["update_id"]))
            if many[row["key"]] > heads.get(row["key"], Head()).owed
        ]
        return tuple(found[:limit])

    async def meter(self, day: date, platform: str, person: str) -> Meter:
        await self._turn()
        return self._spending.meter(day, clean(platform), clean(person))

    async def spent(self, platform: str, person: str, first: date, last: date) -> Usage:
        await self._turn()
        return self._spending.spent(clean(platform), clean(person), first, last)

    async def spent_most(self, day: date, limit: int = 5) -> tuple[Spent, ...]:
        await self._turn()
        return self._spending.most(day, limit)

    async def spent_in_all(self) -> Mapping[str, Usage]:
        await self._turn()
        return self._spending.in_all()

    async def _turn(self) -> None:
        """Lets others go first, as a disk would; what follows happens at once."""
        await asyncio.sleep(0)
        if self._closed:
            raise StorageError("the store is closed")


def _of_key(key: str, platforms: Platforms) -> bool:
    return platforms is None or not platforms.isdisjoint(key.split(":")[2:3])


def _of_lane(lane: str, platforms: Platforms) -> bool:
    return platforms is None or lane.partition(":")[0] in platforms
