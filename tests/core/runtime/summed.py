"""Conversations that outgrow a small window, and a model that sums them up."""

from collections.abc import Callable
from typing import Any

from core.domain.events import Event
from core.domain.messages import ModelFailure, ModelReply, ModelRequest, RequestSize, UserMessage
from core.domain.policy import Policy
from core.models.scripted import ScriptedModel
from core.ports import OnText
from tests.core.runtime.house import KEY, Ground, Process, passes

WINDOW = 2_000
SUMMARY = "## Facts and preferences\n- called Anna\n\n## Open\n- the trip"
PROMISED = "I have summed up"
IN_VAIN = "I wanted to sum up"
LONG = "word " * 300
"""About a fifth of the window."""


class Talker(ScriptedModel):
    """Answers whatever it is asked, takes no more than a window, and counts as the state does."""

    def __init__(self, window: int = WINDOW, density: int = 1) -> None:
        super().__init__(name="talker")
        self.window = window
        self.density = density
        self.overheard: Callable[[ModelRequest], ModelReply | None] = lambda request: None

    async def measure(self, request: ModelRequest) -> RequestSize:
        return RequestSize(counted=tokens(request) * self.density, window=self.window)

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply | ModelFailure:
        self.requests.append(request)
        assert tokens(request) * self.density <= self.window
        return self.overheard(request) or ModelReply(text="I see", model="talker")


def tokens(request: ModelRequest) -> int:
    return sum(len(message.text.encode()) for message in request.messages) // 4


def shown(request: ModelRequest) -> str:
    return "\n".join(m.text for m in request.messages if isinstance(m, UserMessage))


def ground(*summaries: Any, policy: Policy | None = None) -> Ground:
    made = Ground(policy=policy or Policy(system_prompt="Be kind."))
    made.model = Talker()
    made.summarizer = ScriptedModel(*summaries, name="summarizer")
    return made


def asked(made: Ground) -> list[ModelRequest]:
    assert isinstance(made.summarizer, ScriptedModel)
    return made.summarizer.requests


def held(made: Ground) -> ScriptedModel:
    """The summing model, which hangs until it is released."""
    assert isinstance(made.summarizer, ScriptedModel)
    made.summarizer.hold()
    return made.summarizer


async def talks(process: Process, times: int, text: str = LONG) -> None:
    for number in range(times):
        await process.hears(f"{number}: {text}")
        await passes(5)


def answers(made: Ground) -> int:
    return sum(text.startswith("I see") for text in made.chat.texts)


async def log_of(made: Ground) -> list[Event]:
    return [recorded.event for recorded in await made.store.events(KEY)]


async def happened(made: Ground, *kinds: type[Event]) -> list[Event]:
    return [event for event in await log_of(made) if isinstance(event, kinds)]


def told(made: Ground, words: str) -> list[str]:
    return [text for text in made.chat.texts if words in text]


async def too_long(made: Ground) -> Process:
    """A turn that does not fit with what was said before it: it waits for the summary."""
    process = await made.starts()
    await talks(process, 3)
    await process.hears("huge: " + LONG * 3)
    await passes(1)
    return process
