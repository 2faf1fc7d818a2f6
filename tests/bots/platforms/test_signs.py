"""What is known of a platform, as the operator is told it."""

import pytest
from structlog.testing import capture_logs

from bots.platforms.signs import Signs, State
from tests.bots.platforms.telegram.kit import QuickClock

WORDS: dict[State, str] = {
    "off": "not started",
    "connecting": "connecting",
    "receiving": "receiving",
    "unreachable": "out of reach",
    "refused": "refused",
}


@pytest.fixture
def signs() -> Signs:
    signs = Signs("here", WORDS, 60.0, QuickClock())
    signs.receiving()
    return signs


def test_what_we_cannot_reach_is_not_well_however_much_it_sends(signs: Signs) -> None:
    signs.unreached("no connection")
    signs.inbound()

    assert not signs.health().ok
    assert signs.health().detail == "out of reach (no connection)"


def test_one_call_that_arrives_makes_it_well(signs: Signs) -> None:
    signs.unreached("no connection")
    signs.heard()

    assert signs.health().ok
    assert signs.health().detail == "receiving"
    assert signs.health().last_error == "out of reach (no connection)"


def test_it_is_said_once_a_time(signs: Signs) -> None:
    with capture_logs() as logs:
        for _ in range(5):
            signs.unreached("no connection")
        signs.heard()
        signs.unreached("no connection")

    assert [line["state"] for line in logs] == ["unreachable", "unreachable"]


def test_a_refused_token_is_the_worse_news(signs: Signs) -> None:
    signs.enter("refused")
    signs.unreached("no connection")

    assert signs.health().detail == "refused"
