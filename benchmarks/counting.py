"""How long it takes to count a request by a model's own tokenizer; loading it is not counted."""

import asyncio
import random
from statistics import median
from time import perf_counter

import msgspec

from benchmarks.talk import some_text
from core.domain.messages import (
    AssistantMessage,
    ChatMessage,
    ModelRequest,
    SystemMessage,
    UserMessage,
)
from core.models.litellm import LiteLLMModel, Options

MODEL = "openai/gpt-4o"
_SAMPLE = 50


class CountTimes(msgspec.Struct, frozen=True):
    """Seconds, each the median: of a request that was never seen, of the same once more."""

    first: float
    again: float


async def measure(sizes: tuple[int, ...], rounds: int) -> dict[int, CountTimes]:
    """By tokens."""
    sample = _request(_SAMPLE)
    a_message = (await (await _model()).measure(sample)).counted / _SAMPLE
    return {tokens: await _times(_request(round(tokens / a_message)), rounds) for tokens in sizes}


async def _times(request: ModelRequest, rounds: int) -> CountTimes:
    first: list[float] = []
    again: list[float] = []
    for _ in range(rounds):
        model = await _model()
        first.append(await _time(model, request))
        again.append(await _time(model, request))
    return CountTimes(median(first), median(again))


async def _model() -> LiteLLMModel:
    """A new one, which has counted nothing yet."""
    model = LiteLLMModel(Options(name=MODEL), asyncio.sleep, random.Random(1))
    await model.measure(ModelRequest((UserMessage("hello"),)))
    return model


async def _time(model: LiteLLMModel, request: ModelRequest) -> float:
    begin = perf_counter()
    size = await model.measure(request)
    took = perf_counter() - begin
    assert size.counted, "it could not be counted"
    return took


def _request(messages: int) -> ModelRequest:
    dice = random.Random(1)
    said: list[ChatMessage] = [
        UserMessage(some_text(dice)) if number % 2 == 0 else AssistantMessage(some_text(dice))
        for number in range(max(messages, 1))
    ]
    return ModelRequest((SystemMessage("You are a helpful assistant."), *said))
