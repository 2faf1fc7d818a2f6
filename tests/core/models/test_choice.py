import importlib
from typing import Any

import pytest

from core.models.choice import DEFAULTS, choose
from tests.core.models.harness import Models


def test_the_operators_word_comes_first() -> None:
    one_key = {"OPENAI_API_KEY": "sk-1"}

    assert choose("mistral/mistral-large-latest", one_key).name == "mistral/mistral-large-latest"
    assert choose(" Demo ", one_key).name == "demo"


@pytest.mark.parametrize("unset", [None, "", " "])
def test_the_only_key_chooses_its_vendor_and_says_so(unset: str | None) -> None:
    choice = choose(unset, {"ANTHROPIC_API_KEY": "sk-secret", "OPENAI_API_KEY": " ", "HOME": "/"})

    assert choice.name == DEFAULTS["ANTHROPIC_API_KEY"]
    assert "ANTHROPIC_API_KEY" in choice.why
    assert "sk-secret" not in choice.why


def test_no_key_or_several_keys_choose_the_demo_and_say_why() -> None:
    several = choose(None, {"OPENAI_API_KEY": "sk-1", "GROQ_API_KEY": "gsk-1"})

    assert choose(None, {}).name == several.name == "demo"
    assert "no key" in choose(None, {}).why
    assert "OPENAI_API_KEY, GROQ_API_KEY" in several.why


UNLISTED = "openrouter/openrouter/auto"
"""OpenRouter's own choice among its models; the price list has none of them."""


async def test_every_default_is_a_model_that_chats_with_tools(
    model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    await model().load()
    litellm: Any = importlib.import_module("litellm")

    for key, name in DEFAULTS.items():
        monkeypatch.delenv(key, raising=False)
        assert key in litellm.validate_environment(name)["missing_keys"]
        monkeypatch.setenv(key, "sk-1")
        assert litellm.validate_environment(name)["keys_in_environment"]
        assert "tools" in litellm.get_supported_openai_params(name)
    for name in set(DEFAULTS.values()) - {UNLISTED}:
        facts = litellm.get_model_info(name)
        assert (facts["mode"], facts["supports_function_calling"]) == ("chat", True)
