"""Remembers how it stands with a platform and says it once, when it changes; it makes no call."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import structlog
from msgspec.structs import replace

from bots.platforms import Health
from core.ports import Clock

State = Literal[
    "off",
    "connecting",
    "receiving",
    "conflict",
    "unreachable",
    "undelivered",
    "rejected",
    "refused",
    "not stored",
]
"""``undelivered``: the platform cannot reach us; ``rejected``: it does not like how we are set up;
``refused``: it does not know our token, and there is no use in any further call."""

_QUIET = ("off", "connecting", "receiving")
_LASTING = ("undelivered", "rejected", "refused")

log = structlog.get_logger(__name__)


class Signs:
    """``words`` are what each state means and what to do about it, for the operator; after
    ``silent_seconds`` without a word from the platform it is not believed to reach us any more."""

    def __init__(
        self, platform: str, words: Mapping[State, str], silent_seconds: float, clock: Clock
    ) -> None:
        self._platform = platform
        self._words = words
        self._silent_seconds = silent_seconds
        self._clock = clock
        self._state: State = "off"
        self._detail = ""
        self._unreached = ""
        self._received: datetime | None = None
        self._health = Health(ok=False, detail="")

    @property
    def is_receiving(self) -> bool:
        return self._state == "receiving"

    @property
    def refused(self) -> bool:
        return self._state == "refused"

    def introduce(self, name: str, link: str, start_link: str = "") -> None:
        """As ``Health`` has them."""
        self._health = replace(self._health, name=name, link=link, start_link=start_link)

    def heard(self) -> None:
        """The platform answered a call; whether it brings messages is another question."""
        self._unreached = ""
        self._health = replace(self._health, last_sign=self._clock.now())

    def receiving(self) -> None:
        """Said of a poll or a heartbeat; what a call was refused for meanwhile stands."""
        self.heard()
        self._received = self._health.last_sign
        if not self.refused:
            self.enter("receiving")

    def unreached(self, detail: str) -> None:
        """A call of ours did not get there. That is how it stands until one does, or the platform
        is heard of otherwise."""
        if not self._unreached:
            log.warning(self._platform, state="unreachable", detail=detail)
        self._unreached = detail
        self._health = replace(
            self._health, last_error=self._text_of_unreached(), last_error_at=self._clock.now()
        )

    def inbound(self) -> None:
        """A message of a person is on disk."""
        self._health = replace(self._health, last_inbound=self._clock.now())

    def outbound(self) -> None:
        """A message of ours arrived."""
        self._health = replace(self._health, last_outbound=self._clock.now())

    def enter(self, state: State, detail: str = "") -> None:
        changed = state != self._state
        self._state, self._detail = state, detail
        if state not in _QUIET:
            self._health = replace(
                self._health, last_error=self._text(), last_error_at=self._clock.now()
            )
        if not changed:
            return
        connected = self._clock.now() if state == "receiving" else None
        self._health = replace(self._health, connected_since=connected)
        match state:
            case "off" | "connecting" | "receiving":
                log.info(self._platform, state=state)
            case "refused":
                log.error(self._platform, state=state, detail=self._text())
            case _:
                log.warning(self._platform, state=state, detail=self._text())

    def health(self) -> Health:
        silence = self._silence()
        if self.is_receiving and silence > self._silent_seconds:
            detail = f"{self._platform.title()} has been silent for {silence:.0f} s"
            return replace(self._health, ok=False, detail=detail)
        if self.is_receiving and self._unreached:
            return replace(self._health, ok=False, detail=self._text_of_unreached())
        lasting = self._state in _LASTING
        return replace(self._health, ok=self.is_receiving, detail=self._text(), lasting=lasting)

    def _silence(self) -> float:
        now = self._clock.now()
        return (now - (self._received or now)).total_seconds()

    def _text(self) -> str:
        return self._said(self._state, self._detail)

    def _text_of_unreached(self) -> str:
        return self._said("unreachable", self._unreached)

    def _said(self, state: State, detail: str) -> str:
        words = self._words[state]
        return f"{words} ({detail})" if detail else words
