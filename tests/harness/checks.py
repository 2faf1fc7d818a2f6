"""What a user could complain of after a run, and whether the books add up; from outside only."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from core.domain import events as ev
from core.domain.events import Recorded
from core.domain.fold import apply
from core.domain.ledger import Ledger
from core.domain.state import Phase, SessionState
from tests.harness.kills import Cell, may_double
from tests.harness.scripted import echoed
from tests.harness.stage import CHARGED, HANGING, PICKED_UP, SEEING, TAKEN, Scenario, Stage, Wishes

AT_WORK = (Phase.THINKING, Phase.ACTING)


class Verdict(msgspec.Struct, frozen=True):
    """``extra`` messages came where ``allowed`` may; a run is good when it has no ``faults``."""

    faults: list[str]
    extra: int
    allowed: int


async def judge(stage: Stage, scenario: Scenario, cell: Cell) -> Verdict:
    texts = stage.town.bot_texts()
    screen = Screen(texts, scenario.wishes, restarts=stage.lab.restarts)
    allowed = 0 if stage.town.can_ask else may_double(cell, stage.lab.until_struck())
    found = [*screen.missing, *screen.strange]
    if screen.extra > allowed:
        found.append(f"{screen.extra} messages too many, {allowed} allowed: {_short(texts)}")
    found += effects_of(stage, scenario.wishes, texts)
    if stage.lab.model.violations:
        found.append(f"illegal requests: {stage.lab.model.violations}")
    found += [*await books(stage), *await _order(stage), *stage.lab.complaints()]
    return Verdict(found, screen.extra, allowed)


class Screen:
    """What is on it, measured against what was wished for; ``extra`` are doubles and remains."""

    def __init__(self, texts: list[str], wishes: Wishes, restarts: int) -> None:
        self._texts = texts
        self._wishes = wishes
        self._restarts = restarts
        self._may = (*wishes.may, *(f"You wrote {said}" for said in wishes.given_up))
        """Also what was on the screen of an answer when its turn was given up."""
        self._answers = Counter(said for text in texts for said in echoed(text))
        self.missing = [
            *(f"{said!r} was never answered" for said in wishes.answered if not self._counts(said)),
            *(f"{said!r} never came" for said in wishes.said if not self._begin((said,))),
            *(f"none of {some} came" for some in wishes.one_of if not self._begin(some)),
            *self._unanswered(),
        ]
        remains = [text for text in texts if not self._is_known(text)]
        self.strange = [f"{text!r} came out of nowhere" for text in remains if not self._part(text)]
        self.extra = self._doubles() + sum(self._part(text) for text in remains)

    def _counts(self, said: str) -> int:
        return self._answers[said]

    def _begin(self, beginnings: tuple[str, ...]) -> int:
        return sum(text.startswith(beginnings) for text in self._texts)

    def _unanswered(self) -> list[str]:
        notices = self._begin((TAKEN, "Stopped at step", "A new conversation."))
        open_ = [said for said in self._wishes.given_up if not self._counts(said)]
        return [f"nobody spoke of {open_}"] if len(open_) > notices else []

    def _doubles(self) -> int:
        wishes = self._wishes
        once = [self._begin((said,)) for said in wishes.said]
        once += [self._begin(some) for some in wishes.one_of]
        once += [sum(_same(text, said) for text in self._texts) for said in self._may]
        told = max(0, self._begin((PICKED_UP,)) - self._restarts)
        told += max(0, self._begin((TAKEN,)) - len(wishes.given_up))
        return sum(max(0, count - 1) for count in once) + told + self._repeated_answers()

    def _repeated_answers(self) -> int:
        seen: set[str] = set()
        repeated = 0
        for text in self._texts:
            said = set(echoed(text))
            repeated += bool(said & seen)
            seen |= said
        return repeated

    def _is_known(self, text: str) -> bool:
        wishes = self._wishes
        heads = (*wishes.said, *(head for some in wishes.one_of for head in some))
        notices = (PICKED_UP, TAKEN) if wishes.given_up else (PICKED_UP,)
        wanted = {*wishes.answered, *wishes.given_up}
        may = any(_same(text, said) for said in self._may)
        return may or text.startswith((*heads, *notices)) or bool(wanted & set(echoed(text)))

    def _part(self, text: str) -> bool:
        """A preview that nobody knows of any more, since its process died in the act."""
        wishes = self._wishes
        heads = (*wishes.said, *(head for some in wishes.one_of for head in some))
        whole = (*heads, "You wrote ", SEEING, HANGING)
        return any(head.startswith(text) or text.startswith("You wrote ") for head in whole)


def _same(text: str, said: str) -> bool:
    """A preview that was left behind may be the beginning of what it was to be."""
    return text.startswith(said) or said.startswith(text)


def effects_of(stage: Stage, wishes: Wishes, texts: list[str]) -> list[str]:
    charges = [line for line in stage.lab.effects if line.startswith("charge ")]
    sure = any(text.startswith(CHARGED[0]) for text in texts)
    found = [f"the effect was repeated: {charges}"] if len(charges) > wishes.charges else []
    deaths = sum(line.startswith("die ") for line in stage.lab.effects)
    if deaths > wishes.deaths:
        found.append(f"the turn killed the process {deaths} times")
    if sure and not charges:
        found.append("«charged» was said, and nothing was")
    return found


async def books(stage: Stage) -> list[str]:
    """P1, by the service's own count: what it took is what was sent, and nothing of it is open."""
    store = await stage.lab.store()
    books = (await store.ledger()).get(stage.town.platform.name, Ledger())
    found = [f"{stage.sent} messages were sent, {books}"] if books.accepted != stage.sent else []
    if books.pending or not books.balanced:
        found.append(f"the books are not closed: {books}")
    return found


async def _order(stage: Stage) -> list[str]:
    """A message never finds a turn at work that nobody works on: what a crash did is recorded
    before any message is taken."""
    found: list[str] = []
    if not stage.lab.has_one_owner:
        return found
    for key, log in (await stage.lab.logs()).items():
        early = _too_early(key, log, stage.lab.ends)
        found += [f"{key}: {said!r} was taken before recovery" for said in early]
    return found


def _too_early(key: str, log: tuple[Recorded, ...], ends: Sequence[datetime]) -> list[str]:
    """What found a turn at work whose process had ended. It looks at times of a clock that runs as
    ours does."""
    state = SessionState(key=key)
    found: list[str] = []
    begun = datetime.min.replace(tzinfo=UTC)
    for recorded in log:
        event = recorded.event
        turn = state.turn
        begun = recorded.at if isinstance(event, ev.TurnAttempted) else begun
        if isinstance(event, ev.MessageReceived) and turn and state.phase in AT_WORK:
            ended = any(begun < end < recorded.at for end in ends)
            found += [event.inbound.text] if ended and not turn.resumes else []
        state = apply(state, recorded)
    return found


def _short(texts: list[str]) -> list[str]:
    return [text if len(text) < 200 else f"{text[:60]}…" for text in texts]
