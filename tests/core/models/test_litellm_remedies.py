"""Each way in which a model is set up wrongly, and the variable that whoever runs it is told."""

import re

import pytest

from tests.core.models.harness import HELLO, KEY, Heard, Models, failure_of
from tests.standins.anthropic import BAD_KEY as ANTHROPIC_BAD_KEY
from tests.standins.anthropic import NO_CREDIT, AnthropicStandIn
from tests.standins.faults import Refuse
from tests.standins.openai import BAD_KEY, OpenAIStandIn

QUOTA = "You exceeded your current quota, please check your plan and billing details."
MISSING = Refuse(404, "The model `test` does not exist.", code="model_not_found")
NO_MODEL = "openai knows no model openai/test where it is asked: check MODEL, and OPENAI_API_BASE"
NO_CREDIT_LEFT = "The account behind OPENAI_API_KEY has no credit left or is at its limit"


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (BAD_KEY, "openai refuses the key in OPENAI_API_KEY: set a valid one"),
        (Refuse(401, "Unauthorized"), "openai refuses the key in OPENAI_API_KEY"),
        (Refuse(403, "No."), "openai does not let this key use openai/test: check what OPENAI_API"),
        (MISSING, NO_MODEL),
        (Refuse(404, "Not Found"), NO_MODEL),
        (Refuse(402, "Insufficient Balance"), NO_CREDIT_LEFT),
        (Refuse(429, QUOTA, code="insufficient_quota"), NO_CREDIT_LEFT),
        (Refuse(403, "Your team has used all available credits."), NO_CREDIT_LEFT),
    ],
)
async def test_what_whoever_runs_it_can_do(
    ai: OpenAIStandIn, model: Models, heard: Heard, refusal: Refuse, told: str
) -> None:
    ai.script(refusal)
    failure = failure_of(await model(attempts=1).complete(HELLO, heard.on_text))
    assert failure.kind == "never"
    assert failure.remedy.startswith(told)


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (ANTHROPIC_BAD_KEY, "anthropic refuses the key in ANTHROPIC_API_KEY"),
        (NO_CREDIT, "The account behind ANTHROPIC_API_KEY has no credit left"),
        (Refuse(404, "model: claude-sonnet-4-5"), "anthropic knows no model anthropic/claude-sonn"),
    ],
)
async def test_another_vendor_has_another_variable(
    anthropic: AnthropicStandIn, model: Models, heard: Heard, refusal: Refuse, told: str
) -> None:
    anthropic.script(refusal)
    claude = model("anthropic/claude-sonnet-4-5", api_base=anthropic.url, attempts=1)
    failure = failure_of(await claude.complete(HELLO, heard.on_text))
    assert failure.remedy.startswith(told)


async def test_an_address_at_which_nobody_is(
    model: Models, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    asked = model(api_base="http://127.0.0.1:9/v1", attempts=1)
    failure = failure_of(await asked.complete(HELLO, heard.on_text))
    assert failure.kind == "try_again"
    assert failure.remedy == (
        "openai cannot be reached: check the network, and OPENAI_API_BASE where it is set."
    )


async def test_a_wrong_path_is_told_as_a_wrong_address(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    asked = model(api_base=f"{ai.url}/elsewhere", attempts=1)
    failure = failure_of(await asked.complete(HELLO, heard.on_text))
    assert failure.kind == "never"
    assert "OPENAI_API_BASE" in failure.remedy


async def test_without_a_key_it_names_the_one_that_is_missing(
    model: Models, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    failure = failure_of(await model(attempts=1).complete(HELLO, heard.on_text))
    assert failure.remedy == "There is no key for openai: set OPENAI_API_KEY and start me again."


async def test_a_name_without_a_vendor_is_a_wrong_variable(model: Models, heard: Heard) -> None:
    failure = failure_of(await model("smartest", variable="SUMMARY_MODEL").complete(HELLO, print))
    assert failure.remedy.startswith("SUMMARY_MODEL names no vendor that I know (smartest)")


@pytest.mark.parametrize(
    "refusal",
    [
        Refuse(429, "Rate limit reached for test.", code="rate_limit_exceeded"),
        Refuse(429, "Too many at once; more credit lets you ask more."),
        Refuse(500, "Oh."),
    ],
)
async def test_what_passes_by_itself_has_no_remedy(
    ai: OpenAIStandIn, model: Models, heard: Heard, refusal: Refuse
) -> None:
    ai.script(refusal)
    failure = failure_of(await model(attempts=1).complete(HELLO, heard.on_text))
    assert (failure.kind, failure.remedy) == ("try_again", "")


async def test_of_several_models_each_is_told(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.script(BAD_KEY, MISSING)
    asked = model(fallbacks=("openai/other",), attempts=1)
    failure = failure_of(await asked.complete(HELLO, heard.on_text))
    assert re.search(r"key in OPENAI_API_KEY.* no model openai/other .*MODEL_FALLB", failure.remedy)


async def test_a_refused_key_is_found_out_before_anybody_asks(
    ai: OpenAIStandIn, model: Models
) -> None:
    asked = model()
    await asked.load()
    assert await asked.check() is None
    ai.api_key = "another"
    found = await asked.check()
    assert found is not None
    assert found.remedy.startswith("openai refuses the key in OPENAI_API_KEY")
    assert ai.requests == []


@pytest.mark.parametrize("name", ["openai/test", "groq/test"])
async def test_a_missing_key_needs_no_question(
    model: Models, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    asked = model(name)
    await asked.load()
    found = await asked.check()
    assert found is not None
    assert found.remedy.startswith("There is no key for ")


@pytest.mark.parametrize("refusal", [Refuse(403, "No."), Refuse(404, "No."), Refuse(500, "Oh.")])
async def test_an_answer_that_says_nothing_of_the_key_is_none(
    ai: OpenAIStandIn, model: Models, refusal: Refuse
) -> None:
    asked = model()
    await asked.load()
    ai.faults.always("models", refusal)
    assert await asked.check() is None


async def test_a_vendor_that_is_away_or_unknown_is_not_judged(
    model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for asked in (model(api_base="http://127.0.0.1:9/v1"), model("cohere/command-r")):
        await asked.load()
        assert await asked.check() is None
