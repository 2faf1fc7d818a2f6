"""What ``doctor`` says of the data's revision and of the processes that serve; it asks nobody but
the database."""

import os
import socket
from datetime import datetime

from bots.findings import Finding, bad, good
from bots.roster import Line, last_supervised, read
from core.ports import Store
from storage.revisions import OURS
from storage.store import SqlStore

SUPERVISORS = "systemd, a container's restart policy, or a host (docs/upgrades.md)"


def revision_finding(store: SqlStore) -> Finding:
    """Of a store that could be opened: its revision is one that this version can use."""
    found = store.standing
    if found is None:
        return bad("revision", "not known")
    if found.newer:
        return good(
            "revision",
            f"the data is at {found.found}, this older version knows up to {found.needed} and may"
            f" run on it (programs from {found.oldest} on may)",
        )
    return good(
        "revision",
        f"the data is at {found.found}, as this version needs; rolled back: "
        + _rolled_back(found.found or "", found.oldest or ""),
    )


def _rolled_back(found: str, oldest: str) -> str:
    older = OURS.names[: OURS.names.index(found)]
    way = "`stillhere migrate --to REV` of this version first"
    if found == oldest:
        return f"a version before {found} takes {way}" if older else "there is none before it"
    rest = f"; an older one takes {way}" if oldest != OURS.names[0] else ""
    return f"versions from {oldest} on run on it as it is{rest}"


async def process_findings(store: Store, now: datetime) -> tuple[Finding, ...]:
    """A line for each process that serves; for none, a line of the last. Raises StorageError."""
    lines = await read(store)
    alive = [line for line in lines if line.is_alive(now) and not _is_gone(line)]
    if not lines:
        return (good("process", "none has been started by `stillhere run` lately"),)
    if not alive:
        return (_last(max(lines, key=lambda line: line.last)),)
    return tuple([await _serving(store, line) for line in alive])


async def _serving(store: Store, line: Line) -> Finding:
    text = f"{_who(line)}, serves since {line.started:%Y-%m-%d %H:%M} UTC, started by {line.by}"
    if line.supervised:
        return good("process", text)
    before = await last_supervised(store, line.role)
    if before is not None:
        lost = (
            f"{text}; before, on {before.started:%Y-%m-%d} on {before.host}, by {before.by}, which"
            " does not watch over this one: stop it here and start it there"
        )
        return bad("process", lost)
    return good("process", f"{text}: nothing starts it again; {SUPERVISORS} would")


def _last(line: Line) -> Finding:
    text = f"none serves; the last was {_who(line)}, started by {line.by}"
    if line.stopped is not None:
        return good("process", f"{text}, stopped {line.stopped:%Y-%m-%d %H:%M} UTC")
    seen = f"{text}, not seen since {line.seen:%Y-%m-%d %H:%M} UTC; it was not stopped"
    again = f"look why {line.by} has not started it again" if line.supervised else "start it again"
    return bad("process", f"{seen}: {again}")


def _who(line: Line) -> str:
    role = "" if line.role == "all" else f"{line.role}, "
    return f"{role}pid {line.pid} on {line.host}, version {line.version}, data {line.revision}"


def _is_gone(line: Line) -> bool:
    """Killed, and not long enough ago to be silent: only seen from its own machine."""
    if line.host != socket.gethostname():
        return False
    try:
        os.kill(line.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
