"""What goes wrong around a living service, and the errand during which it does; kills nothing."""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from core.domain.notices import failure
from tests.harness.scripted import LONG, PARTS, TOOLS
from tests.harness.stage import CHARGED, PICKED_UP, SEEING, WAITS, Stage, Wishes
from tests.standins.faults import (
    BAD_GATEWAY,
    GARBAGE,
    SERVER_ERROR,
    Fault,
    Hang,
    Reset,
    StoreThenCut,
    too_many,
)

AFTER = "and after that"
AGAIN = "Trying again."
"""What the answer to /retry begins with."""
FAILED = tuple(failure(kind, "") for kind in ("try_again", "never", "too_long", "refused"))
"""What each notice begins with that a turn came to nothing."""
OUTAGE_SECONDS = 1.5
LONG_WAIT = 20
POLL = "getUpdates"
MODEL = "chat/completions"
NEW_MESSAGE = "sendMessage"

Outcome = Literal["answered", "said to have failed", "doubled", "not reached", "red"]


class Errand(msgspec.Struct, frozen=True, kw_only=True):
    """What she asks for while something goes wrong; ``AFTER`` is what she says when it is over."""

    name: str
    text: str
    done: Callable[[Stage], bool]
    wishes: Wishes
    environment: Mapping[str, str] = {}
    webhook: bool = False


def _answers(text: str) -> Callable[[Stage], bool]:
    return lambda stage: stage.answers(text)


def _told(*beginnings: str) -> Callable[[Stage], bool]:
    return lambda stage: any(text.startswith(beginnings) for text in stage.town.bot_texts())


_MAY = (SEEING, WAITS, PICKED_UP, AGAIN, *FAILED)
ERRANDS = (
    Errand(
        name="plain answer",
        text="hello",
        done=_answers("hello"),
        wishes=Wishes(answered=("hello", AFTER), may=_MAY),
    ),
    Errand(
        name="two tools",
        text=TOOLS,
        done=_told(*CHARGED),
        wishes=Wishes(answered=(AFTER,), one_of=(CHARGED,), may=_MAY, charges=1),
    ),
    Errand(
        name="five parts",
        text=LONG,
        done=_told(f"Part {PARTS}."),
        wishes=Wishes(
            answered=(AFTER,),
            said=tuple(f"Part {number}." for number in range(1, PARTS + 1)),
            may=_MAY,
        ),
    ),
    Errand(
        name="plain answer by webhook",
        text="hello",
        done=_answers("hello"),
        wishes=Wishes(answered=("hello", AFTER), may=_MAY),
        webhook=True,
    ),
)


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How a call goes wrong: by ``fault``; then the stand-in is gone for ``outage`` seconds; or all
    later calls to it fail, too, for ``lasting`` seconds. ``stream`` is what becomes of the model's
    reply (fields of ``Reply``). ``rate`` is how fast the service's clock runs."""

    name: str
    fault: Fault | None = None
    outage: float = 0.0
    lasting: float = 0.0
    stream: Mapping[str, int] = {}
    rate: float = 1.0

    @property
    def slow(self) -> bool:
        """Nothing is over before a time limit of the service is."""
        return isinstance(self.fault, Hang)

    def may_double(self, call: str) -> int:
        """What was said may be there though nobody was told: a new Telegram message only."""
        lost = isinstance(self.fault, StoreThenCut) or self.fault == Hang(stores=True)
        return int(lost and call == NEW_MESSAGE)


ANY_CALL = (
    Way(name="refused", fault=Reset(), outage=OUTAGE_SECONDS),
    Way(name="reset", fault=Reset()),
    Way(name="stored, answer lost", fault=StoreThenCut()),
    Way(name="429, a long wait", fault=too_many(LONG_WAIT), rate=2.5),
    Way(name="500", fault=SERVER_ERROR),
    Way(name="500 for a while", fault=SERVER_ERROR, lasting=2.0, rate=5.0),
    Way(name="garbage", fault=GARBAGE),
    Way(name="a proxy's page", fault=BAD_GATEWAY),
    Way(name="hang", fault=Hang()),
    Way(name="stored, then hang", fault=Hang(stores=True)),
)
MODEL_CALL = (
    Way(name="cut in the stream", stream={"cut_after": 2}),
    Way(name="garbage in the stream", stream={"garbage_after": 2}),
    Way(name="hang in the stream", stream={"hang_after": 2}),
    Way(name="500 until it gives up", fault=SERVER_ERROR, lasting=4.0, rate=20.0),
    Way(name="429, an hour", fault=too_many(3600), rate=900.0),
)
POLLS = 3
"""The first, the one that brings the message, and the one that confirms it."""


class FaultCell(msgspec.Struct, frozen=True, kw_only=True):
    """The ``number``-th counted call of the run; of polls, the ``number``-th poll."""

    number: int
    call: str
    way: Way

    def __str__(self) -> str:
        return f"{self.way.name}, at {self.call} {self.number}"

    @property
    def at_model(self) -> bool:
        return self.call == MODEL

    @property
    def may_double(self) -> int:
        return self.way.may_double(self.call)


class FaultResult(msgspec.Struct, frozen=True, kw_only=True):
    """``said`` is what /readyz said while it was not ready, each once."""

    scenario: str
    call: str
    fault: str
    outcome: Outcome
    faults: list[str]
    said: tuple[str, ...]
    seconds: float


def cells_of(calls: list[str], polls: int) -> list[FaultCell]:
    """All of a run that made these counted calls, and of so many of its first polls."""
    cells = [
        FaultCell(number=number, call=POLL, way=way)
        for number in range(1, polls + 1)
        for way in ANY_CALL
    ]
    for number, call in enumerate(calls, 1):
        ways = (*ANY_CALL, *(MODEL_CALL if call == MODEL else ())) if call != POLL else ()
        cells += [FaultCell(number=number, call=call, way=way) for way in ways]
    return cells
