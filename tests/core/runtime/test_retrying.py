"""What fails each second is said, but not each second."""

import pytest
import structlog
from structlog.testing import capture_logs

from core.errors import StorageError
from core.runtime import retrying
from core.runtime.retrying import Seldom
from tests.bots.life import HandClock


def test_the_same_trouble_is_said_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "log", structlog.get_logger())
    clock = HandClock()
    seldom = Seldom(clock)
    with capture_logs() as lines:
        for _ in range(120):
            seldom.warn("outbox unreadable", StorageError("away"))
            clock.passes(seconds=1)
        seldom.warn("timers not read", StorageError("away"))
    said = [line["event"] for line in lines]
    assert said == ["outbox unreadable", "outbox unreadable", "timers not read"]


def test_a_clock_that_is_set_back_silences_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "log", structlog.get_logger())
    clock = HandClock()
    seldom = Seldom(clock)
    with capture_logs() as lines:
        seldom.warn("outbox unreadable", StorageError("away"))
        clock.passes(hours=-2)
        seldom.warn("outbox unreadable", StorageError("away"))
    assert len(lines) == 2
