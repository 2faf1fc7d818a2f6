"""The promises of a session over any sequence of events; ``planted`` shows that this can fail."""

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.core.domain.machine import Sessions

STEPS = 60
EXAMPLES = 400

PLACES = frozenset(
    {
        *("busy queue", "busy steer", "busy interrupt", "answered with a queue", "TurnSteered"),
        *("crash while running", "crash while waiting", "crash while interrupted"),
        *("shutdown while running", "shutdown while interrupted"),
        *("killed in read_only", "killed in idempotent", "killed in unsafe"),
        *("resumed", "no progress", "restored from a snapshot", "Compacted"),
        *("TurnFinished", "TurnFailed", "TurnCancelled", "TurnWaiting", "TurnWoken"),
        *("SessionClosed", "SessionReopened", "SessionSuspended", "StrangerRefused"),
        *("ReminderSet", "ReminderDue", "reminder while idle", "reminder while thinking"),
        *("/stop while thinking", "/stop while acting", "/stop while interrupted"),
        *("/stop with a queue", "/new with a queue", "/new while acting", "/new while suspended"),
        *("/resume while idle", "/resume while suspended", "/retry while idle"),
        *("FilesRead", "FilesLeftOut", "a picture was refused", "stale Read"),
        *("album while queued", "album while thinking"),
        *("CompactionStarted", "CompactionAttempted", "CompactionFailed", "CompactionUndone"),
        *("summed up while idle", "summed up while thinking", "given up", "tried alone"),
        *("/compact while idle", "/compact while thinking", "found too long", "TurnUndone"),
        *("ResultsShortened", "ContextNarrowed", "WindowLearned", "StrategyChosen"),
        *("Pinned", "Unpinned", "retry after undo", "stale Summarize", "stale NotSummarized"),
        *("fresh Expire", "stale Expire", "stale Reply", "stale Fail", "stale Attempt"),
        *("stale StartTool", "stale FinishTool", "stale Remind", "stale Wake"),
    }
)


@pytest.mark.timeout(400)
def test_a_session_keeps_its_promises_whatever_happens() -> None:
    reached: Counter[str] = Counter()

    class Watched(Sessions):
        def teardown(self) -> None:
            super().teardown()
            reached.update(+self.world.reached)

    run_state_machine_as_test(
        Watched, settings=settings(stateful_step_count=STEPS, max_examples=EXAMPLES)
    )

    missed = PLACES - set(reached)
    assert not missed, "the generator no longer gets there"
