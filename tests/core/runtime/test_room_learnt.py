"""A model that was once wrong about what is too long, or about what it used, is asked again."""

import pytest

from core.domain.messages import ModelFailure, ModelReply, ModelRequest, Usage
from core.domain.policy import Policy
from tests.core.runtime.summed import (
    SUMMARY,
    WINDOW,
    Talker,
    answers,
    asked,
    ground,
    talks,
    tokens,
    told,
)
from tests.core.runtime.virtual import in_virtual_time

ABSURD = Usage(10**9, 5)
PROMPT = "Be kind. " * 500
"""More than half of the window."""


class Erring(Talker):
    """Refuses what it could take, or counts what nobody sent, as long as it is wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses = False
        self.usage = Usage()

    async def complete(self, request: ModelRequest, on_text: object) -> ModelReply | ModelFailure:
        self.requests.append(request)
        assert tokens(request) <= self.window
        if self.refuses:
            return ModelFailure(kind="too_long", detail="413")
        return ModelReply(text="I see", usage=self.usage)


@in_virtual_time
async def test_a_model_that_refused_a_small_request_is_asked_again() -> None:
    made = ground()
    made.model = erring = Erring()
    process = await made.starts()
    await talks(process, 1, "hi")
    erring.refuses = True
    await talks(process, 1, "hello")
    assert len(told(made, "too long for the model")) == 1
    before = len(erring.requests)
    await talks(process, 1, "hello again")
    assert len(erring.requests) == before + 1, "once a turn, however often it refuses"
    erring.refuses = False

    await talks(process, 3, "and now?")

    assert answers(made) == 4
    assert "2: and now?" in str(erring.requests[-1].messages)
    assert "0: and now?" in str(erring.requests[-1].messages), "all is in view again"


@pytest.mark.parametrize("summary", [SUMMARY, ""], ids=["summed up", "in vain"])
@in_virtual_time
async def test_usage_that_cannot_be_makes_nobody_deaf(summary: str) -> None:
    made = ground(*[summary] * 9, policy=Policy(system_prompt=PROMPT))
    made.model = erring = Erring()
    erring.usage = ABSURD
    process = await made.starts()

    await talks(process, 4, "hello")

    assert answers(made) == 4
    assert WINDOW / 2 < tokens(erring.requests[-1]) <= WINDOW
    assert len(asked(made)) <= 4
