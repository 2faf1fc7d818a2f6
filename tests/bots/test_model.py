from collections.abc import Mapping

import pytest

from bots.clock import SystemClock
from bots.model import build_model, build_summary_model
from bots.settings import Settings
from core.domain.messages import ModelRequest, UserMessage
from core.models.demo import WINDOW
from tests.core.models.harness import KEY

HELLO = ModelRequest((UserMessage("hello"),))
KEYS: Mapping[str, str] = {"OPENAI_API_KEY": KEY}


@pytest.mark.parametrize(
    ("model", "window", "taken"),
    [
        ("demo", 0, WINDOW),
        ("demo", 500, 500),
        ("openai/gpt-4", 0, 6144),
        ("openai/gpt-4", 500, 500),
    ],
)
async def test_the_window_is_the_operators_or_what_is_known(
    model: str, window: int, taken: int
) -> None:
    settings = Settings(model=model, context_window=window)

    built = build_model(settings, KEYS, SystemClock())

    assert (await built.measure(HELLO)).window == taken


async def test_another_model_may_sum_up_with_a_window_of_its_own() -> None:
    settings = Settings(model="demo", summary_model="openai/gpt-4", context_window=500)
    model = build_model(settings, KEYS, SystemClock())

    another = build_summary_model(settings, KEYS, SystemClock(), model)

    assert another.name == "openai/gpt-4"
    assert (await another.measure(HELLO)).window == 6144


@pytest.mark.parametrize("named", ["", "demo"])
async def test_the_same_model_sums_up_where_no_other_is_named(named: str) -> None:
    settings = Settings(model="demo", summary_model=named)
    model = build_model(settings, {}, SystemClock())

    assert build_summary_model(settings, {}, SystemClock(), model) is model
