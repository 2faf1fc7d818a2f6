"""The operator's numbers as one frozen value; holds no secret and reads no environment."""

from datetime import time
from typing import Literal

import msgspec

BusyMode = Literal["queue", "steer", "interrupt"]
Strategy = Literal["full", "window", "compact", "auto"]
"""What of a long conversation the model is shown: all that fits; the newest turns; the newest turns
behind a summary of the others; «auto» is all of a short one, then «compact», and only the newest
turns for what no user asked just now."""
Durability = Literal["sync", "async", "exit"]
"""When model text and looks are on disk: before the next effect, a moment later, with the turn's
end or whatever may not wait. Everything else is always ``sync``."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Times are in seconds, ``daily_reset_at`` is a UTC time of day, None switches a reset off."""

    model: str = "demo"
    system_prompt: str = "You are a helpful assistant in a chat. Answer in Markdown."
    busy_mode: BusyMode = "queue"
    durability: Durability = "sync"
    idle_reset: float | None = 24 * 3600.0
    daily_reset_at: time | None = None
    turn_max_steps: int = 50
    turn_max_attempts: int = 5
    turn_max_resumes: int = 20
    attempt_delays: tuple[float, ...] = (0.0, 0.0, 5.0, 30.0, 60.0)
    """Waiting time before each attempt; from the third on a turn also runs alone."""
    told_after: float = 30.0
    """An interruption longer than this is said to the user."""
    album_wait: float = 1.0
    """How long a turn waits for the rest of the pictures that were sent as one."""
    refusal_pause: float = 24 * 3600.0
    """A stranger is told again only after this time."""
    strategy: Strategy = "auto"
    context_window: int = 24_000
    """Tokens that the model takes, as long as it is not known better."""
    context_full: int = 8_000
    """Tokens of a short conversation: more than that «auto» does not show to what no user asked."""
    compact_at: float = 0.75
    """The share of the window at which older turns are summed up, or leave."""
    compact_to: float = 0.25
    """The share of the window, without what always stays, that the newest turns may keep then."""
    compact_step: float = 0.1
    """The share of the window by which the context has to grow before the next try."""
    compact_attempts: int = 3
    context_entries: int = 1_000
    """As many at most are shown, however small they are."""
    snapshot_every: int = 50
    daily_usd_per_user: float = 0.0
    """US dollars that a person's models may cost a day (UTC); 0 for no limit, as of the others."""
    daily_tokens_per_user: int = 0
    daily_usd: float = 0.0
    """Of all persons together."""
