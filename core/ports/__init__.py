"""What the core asks of the outside world; promises only, no behaviour.

All times are UTC. Every method raises what it names and nothing else.
"""

from core.domain.outputs import AccessGrant, InboxId, Outcome, Timer
from core.ports.delivery import Channel, Claimed, Outbox, Pace, Paces, PreviewState
from core.ports.outside import Clock, Model, OnText, Tool, ToolContext, ToolOutput, Transcriber
from core.ports.sessions import (
    Artifact,
    Commit,
    Hear,
    Lease,
    Notification,
    Platforms,
    Quarantine,
    RawHead,
    RawLogs,
    RawRow,
    SessionStore,
    Stored,
    StreamInfo,
)
from core.ports.store import (
    Directory,
    Files,
    Leases,
    Notifications,
    Spending,
    Store,
    Timers,
    Unowed,
)
from core.ports.telemetry import UNWATCHED, Happening, Span, SpanKind, Telemetry, TurnEnd

__all__ = [
    "UNWATCHED",
    "AccessGrant",
    "Artifact",
    "Channel",
    "Claimed",
    "Clock",
    "Commit",
    "Directory",
    "Files",
    "Happening",
    "Hear",
    "InboxId",
    "Lease",
    "Leases",
    "Model",
    "Notification",
    "Notifications",
    "OnText",
    "Outbox",
    "Outcome",
    "Pace",
    "Paces",
    "Platforms",
    "PreviewState",
    "Quarantine",
    "RawHead",
    "RawLogs",
    "RawRow",
    "SessionStore",
    "Span",
    "SpanKind",
    "Spending",
    "Store",
    "Stored",
    "StreamInfo",
    "Telemetry",
    "Timer",
    "Timers",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "Transcriber",
    "TurnEnd",
    "Unowed",
]
