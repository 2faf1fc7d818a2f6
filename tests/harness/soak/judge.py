"""Whether each message of each person is accounted for, by what stands on her screen; the books of
the service are only held against that."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from core.domain import notices
from tests.harness.scripted import echoed
from tests.harness.soak.crowd import FAILED, NEW, REPLIES, STOPPED, Order, Person, Sent, replies_to
from tests.harness.soak.words import CHARGED, DOUBTFUL, FORGET, NAME, SEEING, name, owner_of
from tests.standins.telegram_chats import Message

BESIDE = ("(I was interrupted; picking up", "(The older part", "(It was quiet", "(The model's rate")
"""Notices that may stand beside an answer."""
REMINDED = re.compile(rf"({FORGET} {NAME.pattern}\.\s*)+")
GROWING = ("You wrote ", SEEING, CHARGED, FORGET)


class Account(msgspec.Struct, kw_only=True):
    """Of one person. ``extra`` are messages of the bot's too many, of which ``allowed`` may be,
    since kills left so many in doubt; ``gaps`` are the seconds from a message to its answer."""

    faults: list[str] = []
    sent: int = 0
    answered: int = 0
    failed: int = 0
    discarded: int = 0
    extra: int = 0
    allowed: int = 0
    gaps: list[float] = []


class Evidence(msgspec.Struct, frozen=True):
    """``outcomes`` by update id, ``doubts`` by session key, ``charges`` by message."""

    outcomes: Mapping[int, str]
    doubts: Mapping[str, int]
    charges: Mapping[str, int]


def judged(person: Person, evidence: Evidence) -> Account:
    return _Judge(person, evidence).account()


class _Judge:
    def __init__(self, person: Person, evidence: Evidence) -> None:
        self._person = person
        self._evidence = evidence
        self._seen = [m for m in person.user.chat if m.from_bot]
        self._texts = [message.text for message in self._seen]
        self._said = [sent for sent in person.sent if not sent.what.startswith("/")]
        self._answers = Counter(one for text in self._texts for one in echoed(text))
        self._outcome = {s.what: evidence.outcomes.get(s.update_id, "lost") for s in self._said}

    def account(self) -> Account:
        person, outcomes = self._person, self._evidence.outcomes
        extra, allowed = self._extra(), self._evidence.doubts.get(self._person.key, 0)
        found = [
            *self._unaccounted(),
            *self._orders_unanswered(),
            *self._strange(),
            *self._others(),
            *self._disorder(),
            *self._effects(),
            *self._reminders(),
        ]
        if extra > allowed:
            found.append(f"{extra} messages too many, {allowed} allowed")
        ends = Counter(outcomes.get(sent.update_id, "lost") for sent in person.sent)
        return Account(
            faults=[f"p{person.number:02}: {fault}" for fault in found],
            sent=len(person.sent),
            answered=ends["answered"],
            failed=ends["failed"],
            discarded=ends["discarded"],
            extra=extra,
            allowed=allowed,
            gaps=self._gaps(),
        )

    def _unaccounted(self) -> list[str]:
        """What has no answer has a notice; screen and books tell the same of each message."""
        found: list[str] = []
        for what, outcome in self._outcome.items():
            if outcome == "answered" and not self._answers[what]:
                found.append(f"{what} was never answered, the books say it was")
            elif outcome not in ("answered", "failed", "discarded"):
                found.append(f"{what} is {outcome} in the books")
        notices = {"discarded": self._count((STOPPED,)), "failed": self._count(FAILED)}
        for outcome, told in notices.items():
            open_ = [what for what, one in self._outcome.items() if one == outcome]
            if open_ and not told:
                found.append(f"nobody spoke of {open_}, {outcome} in the books")
        return found + self._unspoken_stops()

    def _unspoken_stops(self) -> list[str]:
        """A message without an answer was written before a stop that took, or before a failure."""
        stops = [m for m in self._seen if m.text.startswith((STOPPED, *FAILED))]
        last = max((m.versions[-1].at for m in stops), default=0.0)
        open_ = [s for s in self._said if not self._answers[s.what]]
        return [f"{s.what} came after every notice and has none" for s in open_ if s.at > last]

    def _orders_unanswered(self) -> list[str]:
        found: list[str] = []
        for order in REPLIES:
            given = sum(sent.kind == order for sent in self._person.sent)
            replies = self._replies(order)
            found += [f"{given} × {order}, {replies} replies"] * (replies < given)
        return found

    def _strange(self) -> list[str]:
        return [f"{text!r} came out of nowhere" for text in self._texts if not _known(text)]

    def _others(self) -> list[str]:
        own = owner_of(name(self._person.number, 0))
        found = [one for text in self._texts for one in NAME.findall(text)]
        return [f"saw {one}" for one in found if owner_of(one) != own]

    def _disorder(self) -> list[str]:
        """First answers come in the order of the messages, unless what was put aside came back."""
        if self._retries():
            return []
        firsts = list(dict.fromkeys(one for text in self._texts for one in echoed(text)))
        return [f"{b} was answered after {a}" for a, b in pairwise(firsts) if a > b]

    def _effects(self) -> list[str]:
        """At most once; once and told without doubt: exactly so."""
        found: list[str] = []
        charges = self._evidence.charges
        bought = [sent for sent in self._said if sent.kind in ("tools", "slowtool")]
        found += [
            f"{s.what} was charged {charges[s.what]} times" for s in bought if _twice(s, charges)
        ]
        for text in self._texts:
            if text.startswith(CHARGED) and not text.startswith(DOUBTFUL):
                told = [s for s in bought if s.what in echoed(text)]
                found += [f"{s.what}: charged, it says" for s in told if not charges.get(s.what)]
        return found

    def _reminders(self) -> list[str]:
        """One for each message that asked for it and was answered."""
        asked = [s.what for s in self._said if s.kind == "remind"]
        answered = [what for what in asked if self._outcome[what] == "answered"]
        return [f"nobody reminded of {w}" for w in answered if not self._reminded(w)]

    def _extra(self) -> int:
        """Doubles and beginnings that nobody went on with; but for those that a stop left, and
        what was to be answered anew."""
        orders = Counter(sent.kind for sent in self._person.sent)
        surplus = [self._replies(order) - orders[order] for order in REPLIES]
        surplus += [self._reminds(s.what) - 1 for s in self._said if s.kind == "remind"]
        surplus.append(sum(map(_is_beginning, self._texts)) - self._ends())
        surplus.append(self._repeated() - self._count(("Trying again.",)))
        return sum(max(0, one) for one in surplus)

    def _repeated(self) -> int:
        seen: set[str] = set()
        repeated = 0
        for text in self._texts:
            said = set(echoed(text))
            repeated += bool(said & seen)
            seen |= said
        return repeated

    def _gaps(self) -> list[float]:
        """Not of those who retry: what was put aside has no time of its own."""
        if self._retries():
            return []
        whole: dict[str, float] = {}
        for message in self._seen:
            for one, at in answered_at(message):
                whole[one] = min(at, whole.get(one, at))
        return [whole[sent.what] - sent.at for sent in self._said if sent.what in whole]

    def _retries(self) -> bool:
        return any(sent.kind == "/retry" for sent in self._person.sent)

    def _ends(self) -> int:
        return sum(text.startswith((STOPPED, *FAILED)) for text in self._texts)

    def _count(self, beginnings: tuple[str, ...]) -> int:
        return sum(text.startswith(beginnings) for text in self._texts)

    def _replies(self, order: Order) -> int:
        return sum(replies_to(order, text) for text in self._texts)

    def _reminded(self, what: str) -> bool:
        """By its answer, or by the notice that its turn was stopped."""
        line = notices.reminder(what)
        return bool(self._reminds(what)) or any(line in text.splitlines() for text in self._texts)

    def _reminds(self, what: str) -> int:
        return sum(f"{FORGET} {what}." in text for text in self._texts)


def _twice(sent: Sent, charges: Mapping[str, int]) -> bool:
    return charges.get(sent.what, 0) > 1


def _known(text: str) -> bool:
    heads = [head for some in REPLIES.values() for head in some]
    heads += [*FAILED, *BESIDE, *GROWING]
    return text.startswith(tuple(heads)) or NEW in text or "You wrote ".startswith(text)


def _is_beginning(text: str) -> bool:
    return text.startswith(GROWING) and not echoed(text) and not REMINDED.fullmatch(text)


def answered_at(message: Message) -> Sequence[tuple[str, float]]:
    """When each message that it answers stood in it for the first time."""
    found: dict[str, float] = {}
    for version in message.versions:
        for one in echoed(version.text):
            found.setdefault(one, version.at)
    return tuple(found.items())
