"""A decision in the making; pure, it decides nothing itself."""

from datetime import datetime

from core.domain import events as ev
from core.domain.fold import apply
from core.domain.policy import Policy
from core.domain.state import SessionState


class Draft:
    """Events in the making with the state that they lead to; lives for one decision only."""

    def __init__(self, state: SessionState, at: datetime, policy: Policy) -> None:
        self.state = state
        self.at = at
        self.policy = policy
        self.events: tuple[ev.Event, ...] = ()

    def add(self, *events: ev.Event) -> None:
        """Raises IllegalEventError."""
        for event in events:
            recorded = ev.Recorded(self.state.seq + 1, self.at, event)
            self.state = apply(self.state, recorded)
            self.events += (event,)
