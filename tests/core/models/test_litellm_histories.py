"""Whatever happened in a session: each vendor takes what its model is asked then."""

from collections import Counter
from types import ModuleType

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from core.domain.messages import ModelRequest
from core.models.litellm_load import load
from tests.core.models.asking import Asking
from tests.core.models.bodies import claude_body, openai_body
from tests.standins import anthropic_checks, openai_checks

EXAMPLES = 40
STEPS = 40


@pytest.fixture(scope="module")
def litellm() -> ModuleType:
    return load()


@pytest.mark.parametrize("mended", [True, False], ids=["as it is sent", "unmended"])
def test_no_vendor_refuses_what_a_session_asks(
    litellm: ModuleType, monkeypatch: pytest.MonkeyPatch, *, mended: bool
) -> None:
    """Nor would one if litellm did not mend it first."""
    monkeypatch.setattr(litellm, "modify_params", mended)
    seen: Counter[str] = Counter()

    def judge(request: ModelRequest) -> None:
        claude, gpt = claude_body(litellm, request), openai_body(litellm, request)
        assert anthropic_checks.violations(claude) == []
        assert openai_checks.violations(gpt) == []
        seen.update(type(message).__name__ for message in request.messages)
        seen["picture"] += len(request.files)
        seen["interrupted"] += "You were interrupted" in str(request.messages)

    class Judged(Asking):
        pass

    Judged.judge = staticmethod(judge)
    run_state_machine_as_test(
        Judged, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
    )

    assert min(seen[kind] for kind in ("ToolMessage", "picture", "interrupted")) > 0, seen
