"""Remembers how it stands with Telegram and says it once, when it changes; it makes no call."""

from datetime import datetime
from typing import Literal

import structlog

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
SILENT_SECONDS = 90.0
"""Two polls with all their slack, or a look at the webhook a minute, are well below it."""

_WORDS: dict[State, str] = {
    "off": "not started",
    "connecting": "connecting",
    "receiving": "receives messages",
    "conflict": (
        "another instance takes this bot's messages; stop it, or give it a token of its own. "
        "Trying on"
    ),
    "unreachable": "Telegram is out of reach; trying on",
    "undelivered": "Telegram cannot deliver to PUBLIC_URL; it keeps trying",
    "rejected": "Telegram rejects how it is set up; trying on",
    "refused": (
        "Telegram refuses TELEGRAM_BOT_TOKEN, so nothing is received or sent; get a valid one "
        "from @BotFather and start again"
    ),
    "not stored": "messages cannot be stored; they wait at Telegram until the database is back",
}

log = structlog.get_logger(__name__)


class Signs:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._state: State = "off"
        self._detail = ""
        self._last_sign: datetime | None = None
        self._received: datetime | None = None

    @property
    def is_receiving(self) -> bool:
        return self._state == "receiving"

    @property
    def refused(self) -> bool:
        return self._state == "refused"

    def heard(self) -> None:
        """Telegram answered a call; whether it brings messages is another question."""
        self._last_sign = self._clock.now()

    def receiving(self) -> None:
        """Said of a poll; what a call was refused for meanwhile stands."""
        self.heard()
        self._received = self._last_sign
        if not self.refused:
            self.enter("receiving")

    def enter(self, state: State, detail: str = "") -> None:
        changed = state != self._state
        self._state, self._detail = state, detail
        if not changed:
            return
        match state:
            case "off" | "connecting" | "receiving":
                log.info("telegram", state=state)
            case "refused":
                log.error("telegram", state=state, detail=self._text())
            case _:
                log.warning("telegram", state=state, detail=self._text())

    def health(self) -> Health:
        silence = self._silence()
        if self._state == "receiving" and silence > SILENT_SECONDS:
            detail = f"Telegram has been silent for {silence:.0f} s"
            return Health(ok=False, detail=detail, last_sign=self._last_sign)
        ok = self._state == "receiving"
        return Health(ok=ok, detail=self._text(), last_sign=self._last_sign)

    def _silence(self) -> float:
        now = self._clock.now()
        return (now - (self._received or now)).total_seconds()

    def _text(self) -> str:
        words = _WORDS[self._state]
        return f"{words} ({self._detail})" if self._detail else words
