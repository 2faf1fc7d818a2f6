from collections.abc import AsyncIterator, Iterator

import pytest

from tests.core.models.harness import KEY, Heard, Models
from tests.standins.anthropic import AnthropicStandIn
from tests.standins.openai import OpenAIStandIn


@pytest.fixture
def ai(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIStandIn]:
    with OpenAIStandIn(api_key=KEY) as stand_in:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_BASE", f"{stand_in.url}/v1")
        yield stand_in
    assert stand_in.violations == []


@pytest.fixture
def anthropic(monkeypatch: pytest.MonkeyPatch) -> Iterator[AnthropicStandIn]:
    with AnthropicStandIn(api_key=KEY) as stand_in:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        yield stand_in
    assert stand_in.violations == []


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
async def model(heard: Heard) -> AsyncIterator[Models]:
    models = Models(heard)
    yield models
    await models.close()
