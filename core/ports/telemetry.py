"""What those are told who watch the work: what happens, and how long things take.

Nothing that is told here holds words of people or an id of theirs: metrics and traces go to places
where conversations do not.
"""

from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from core.domain.keys import TurnId
from core.domain.messages import Usage

Happening = Literal["recovery", "handover", "lease_loss", "rate_limit", "database_error"]
SpanKind = Literal["step", "model", "summary", "tool", "commit", "send", "transaction"]
TurnOutcome = Literal["answered", "failed", "cancelled"]


class Span(msgspec.Struct, kw_only=True):
    """A piece of work. Who does it says its ``outcome``, a word of a small set; when an error ends
    it before that, it is the name of the error's class. ``name`` is of the model, the tool, or the
    kind of a transaction."""

    kind: SpanKind
    platform: str = ""
    turn: TurnId | None = None
    step: int = 0
    name: str = ""
    outcome: str = ""
    usage: Usage = Usage()


class TurnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that is over, whoever worked on it and however often it was taken up again."""

    turn: TurnId
    platform: str
    outcome: TurnOutcome
    reason: str = ""
    """Of a turn that was not answered: a word of a small set."""
    started_at: datetime
    ended_at: datetime
    steps: int
    resumes: int


class Telemetry(Protocol):
    """Never raises, never waits: whatever is the matter with who watches, the work goes on."""

    def count(self, what: Happening, platform: str = "") -> None:
        """It happened once. ``platform`` where it is known."""
        ...

    def span(self, span: Span) -> AbstractContextManager[Span]:
        """Around the work, which may well raise."""
        ...

    def ended(self, turn: TurnEnd) -> None: ...


class Unwatched:
    """``Telemetry`` that nobody listens to."""

    def count(self, what: Happening, platform: str = "") -> None:
        pass

    def span(self, span: Span) -> AbstractContextManager[Span]:
        return nullcontext(span)

    def ended(self, turn: TurnEnd) -> None:
        pass


UNWATCHED: Telemetry = Unwatched()
