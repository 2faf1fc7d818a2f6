"""Whatever happened in a session: each vendor takes what its model is asked then."""

from collections import Counter
from types import ModuleType

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from core.domain.context import PINNED, SUMMARY
from core.domain.messages import ModelRequest
from core.models.litellm_load import load
from tests.core.models.asking import Asking
from tests.core.models.bodies import claude_body, openai_body
from tests.standins import anthropic_checks, openai_checks

STEPS = 40
TOLD = ("You were interrupted", SUMMARY, PINNED)


@pytest.fixture(scope="module")
def litellm() -> ModuleType:
    return load()


@pytest.mark.parametrize(
    "histories",
    [40, pytest.param(5000, marks=[pytest.mark.matrix, pytest.mark.timeout(4 * 3600)])],
)
def test_no_vendor_refuses_what_a_session_asks(
    litellm: ModuleType, monkeypatch: pytest.MonkeyPatch, histories: int
) -> None:
    """Nor would one if litellm did not mend it first."""
    seen: Counter[str] = Counter()

    def judge(request: ModelRequest) -> None:
        for mended in (True, False):
            monkeypatch.setattr(litellm, "modify_params", mended)
            claude, gpt = claude_body(litellm, request), openai_body(litellm, request)
            assert anthropic_checks.violations(claude) == []
            assert openai_checks.violations(gpt) == []
        seen.update(type(message).__name__ for message in request.messages)
        seen["picture"] += len(request.files)
        said = str(request.messages)
        seen.update(words for words in TOLD if words in said)

    class Judged(Asking):
        pass

    Judged.judge = staticmethod(judge)
    run_state_machine_as_test(
        Judged, settings=settings(max_examples=histories, stateful_step_count=STEPS)
    )

    assert min(seen[kind] for kind in ("ToolMessage", "picture", *TOLD)) > 0, seen
