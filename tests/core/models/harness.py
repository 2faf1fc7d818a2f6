"""What the tests of a model share: a listener, a clock that never waits, a maker of models."""

import asyncio
import random
from typing import Any

from core.domain.messages import (
    ModelFailure,
    ModelReply,
    ModelRequest,
    SystemMessage,
    ToolSpec,
    UserMessage,
)
from core.models.litellm import LiteLLMModel, Options

KEY = "sk-stand-in-0123456789abcdefghijklmnop"
NOW = ToolSpec("now", "The time.", {"type": "object", "properties": {}})
HELLO = ModelRequest((SystemMessage("Be kind."), UserMessage("hello")), (NOW,))


class Heard:
    """What a chat would have shown, and how long the model would have slept."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.pauses: list[float] = []

    def on_text(self, text: str) -> None:
        self.texts.append(text)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


class Models:
    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._made: list[LiteLLMModel] = []

    def __call__(self, name: str = "openai/test", **options: Any) -> LiteLLMModel:
        chosen = Options(name=name, **options)
        self._made.append(LiteLLMModel(chosen, self._heard.sleep, random.Random(1)))
        return self._made[-1]

    async def close(self) -> None:
        for model in self._made:
            await model.close()


def reply_of(result: ModelReply | ModelFailure) -> ModelReply:
    assert isinstance(result, ModelReply), result
    return result


def failure_of(result: ModelReply | ModelFailure) -> ModelFailure:
    assert isinstance(result, ModelFailure), result
    assert KEY not in result.detail
    return result
