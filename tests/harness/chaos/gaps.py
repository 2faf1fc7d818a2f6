"""How long people waited, and for how long nobody was shown anything; it judges nobody."""

import statistics
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from tests.harness.chaos.watch import Span, Touch
from tests.harness.soak.crowd import REPLIES, Person, Sent, replies_to
from tests.harness.soak.judge import answered_at

TYPING = "sendChatAction"


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Of one message that nothing of its writer stood before: written ``at``, ``sign`` is when the
    first of its answer was seen, typing or text, ``whole`` when it was whole. ``pause`` is the
    longest time between two things that she saw of it. Unix time and seconds."""

    at: float
    sign: float
    whole: float
    pause: float

    @property
    def seconds(self) -> float:
        return self.sign - self.at


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """``waits`` are in order of time, ``touches`` all moments at which anything was shown."""

    waits: list[Wait]
    touches: list[float]

    def seen_in(self, began: float, ended: float) -> list[Wait]:
        """Those that someone waited for in that time."""
        return [one for one in self.waits if one.at <= ended and one.whole >= began]

    def silence(self, began: float, ended: float) -> float:
        """Seconds for which nobody was shown anything although someone waited; no longer than to
        the first thing shown after it ``ended``."""
        first = bisect_left(self.touches, began)
        last = bisect_right(self.touches, ended)
        moments = [began, *self.touches[first : last + 1]]
        longest = 0.0
        for since, until in pairwise(moments):
            open_ = [one.at for one in self.waits if one.at < until and one.sign >= until]
            if open_:
                longest = max(longest, until - max(since, min(open_)))
        return longest


def timing(people: Iterable[Person], touches: Sequence[Touch]) -> Timing:
    by_chat: defaultdict[int, list[Touch]] = defaultdict(list)
    for touch in touches:
        by_chat[touch.chat].append(touch)
    waits = [wait for person in people for wait in _waits(person, by_chat[person.user.id])]
    return Timing(
        waits=sorted(waits, key=lambda one: one.at),
        touches=sorted(touch.at for touch in touches),
    )


def _waits(person: Person, touches: Sequence[Touch]) -> Iterable[Wait]:
    """What is put aside by ``/retry`` has no time of its own."""
    if any(sent.kind == "/retry" for sent in person.sent):
        return
    signs: dict[str, float] = {}
    wholes: dict[str, float] = {}
    for message in person.user.chat:
        for one, at in answered_at(message) if message.from_bot else ():
            if one not in wholes or at < wholes[one]:
                wholes[one], signs[one] = at, message.sent_at
    free = 0.0
    """When she had seen the end of all that she had written so far."""
    for sent in person.sent:
        whole = wholes.get(sent.what)
        if whole is not None and free < sent.at:
            typed = (t.at for t in touches if t.method == TYPING and t.at >= sent.at)
            sign = min(next(typed, whole), max(signs[sent.what], sent.at))
            seen = [sent.at, *(t.at for t in touches if sent.at < t.at < whole), whole]
            yield Wait(
                at=sent.at,
                sign=sign,
                whole=whole,
                pause=max(b - a for a, b in pairwise(seen)),
            )
        free = _replied_at(person, sent) if sent.what in REPLIES else whole or float("inf")


def _replied_at(person: Person, order: Sent) -> float:
    seen = (m for m in person.user.chat if m.from_bot and m.sent_at >= order.at)
    told = (m.sent_at for m in seen if order.what in REPLIES and replies_to(order.what, m.text))
    return next(told, float("inf"))


def spread(values: Sequence[float]) -> str:
    """Middle, ninety-fifth percentile and longest."""
    if len(values) < 2:
        return "too few"
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return f"{cuts[9]:.2f} s, {cuts[18]:.2f} s, {max(values):.2f} s"


def in_spans(spans: Iterable[Span], timing: Timing) -> list[Wait]:
    return list(dict.fromkeys(w for s in spans for w in timing.seen_in(s.began, s.ended)))
