"""The arithmetic of the accounting, and what a session says it owes."""

import pytest

from core.domain.ledger import Ledger, owed
from core.domain.state import SessionState, Source, SourceKind, Turn
from tests.core.domain.samples import HOME, KEY, START


def test_it_is_balanced_when_the_four_ends_make_the_sum() -> None:
    ledger = Ledger(accepted=10, answered=4, failed=3, discarded=2, pending=1)
    assert (ledger.missing, ledger.balanced, ledger.verdict) == (0, True, "balanced")


@pytest.mark.parametrize(
    ("accepted", "missing", "verdict"),
    [
        (11, 1, "UNEQUAL: 1 message is accounted for by nobody"),
        (13, 3, "UNEQUAL: 3 messages are accounted for by nobody"),
        (9, -1, "UNEQUAL: 1 message is accounted for though never taken"),
    ],
)
def test_it_says_how_many_are_missing(accepted: int, missing: int, verdict: str) -> None:
    ledger = Ledger(accepted=accepted, answered=4, failed=3, discarded=2, pending=1)
    assert (ledger.missing, ledger.balanced, ledger.verdict) == (missing, False, verdict)


def test_two_add_up_number_by_number() -> None:
    one = Ledger(accepted=1, answered=2, failed=3, discarded=4, pending=5)
    more = Ledger(accepted=10, answered=20, failed=30, discarded=40, pending=50)
    assert (one + more).numbers == {
        "accepted": 11,
        "answered": 22,
        "failed": 33,
        "discarded": 44,
        "pending": 55,
    }


def sources(*kinds: SourceKind) -> tuple[Source, ...]:
    return tuple(Source(seq, kind, HOME, 1) for seq, kind in enumerate(kinds, 1))


def turn(*kinds: SourceKind) -> Turn:
    return Turn(number=1, sources=sources(*kinds), started_at=START)


@pytest.mark.parametrize(
    ("in_turn", "queued", "count"),
    [
        (None, (), 0),
        (None, ("user",), 1),
        (turn("user", "user"), (), 2),
        (turn("user", "reminder"), ("reminder", "user"), 2),
        (turn("reminder"), ("reminder",), 0),
    ],
)
def test_a_session_owes_the_messages_of_its_user_and_no_reminder(
    in_turn: Turn | None, queued: tuple[SourceKind, ...], count: int
) -> None:
    assert owed(SessionState(key=KEY, turn=in_turn, queue=sources(*queued))) == count
