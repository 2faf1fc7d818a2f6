import pytest

from core.domain.messages import FailureKind
from core.models.litellm_errors import retry_after
from tests.core.models.harness import HELLO, KEY, Heard, Models, failure_of, reply_of
from tests.standins.anthropic import NO_CREDIT, AnthropicStandIn
from tests.standins.anthropic import TOO_LARGE as ANTHROPIC_TOO_LARGE
from tests.standins.anthropic import TOO_LONG as ANTHROPIC_TOO_LONG
from tests.standins.faults import Refuse
from tests.standins.openai import TOO_LONG as OPENAI_TOO_LONG
from tests.standins.openai import OpenAIStandIn


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "7", "retry-after-ms": "1500"}, 1.5),
        (
            {
                "date": "Tue, 05 May 2026 14:30:22 GMT",
                "retry-after": "Tue, 05 May 2026 14:31:22 GMT",
            },
            60.0,
        ),
        (
            {
                "date": "Tue, 05 May 2026 14:30:22 GMT",
                "retry-after": "Tue, 05 May 2026 14:29:22 GMT",
            },
            0.0,
        ),
        ({"retry-after": "Tue, 05 May 2026 14:31:22 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_how_long_the_vendor_wants_us_to_wait(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds


def said(status: int, text: str, code: str | None = None) -> Refuse:
    return Refuse(status, text, code=code)


QUOTA = "You exceeded your current quota, please check your plan and billing details."
PER_MINUTE = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 42000."
EMPTY_ACCOUNTS = [
    said(402, "Insufficient Balance"),
    said(429, QUOTA, "insufficient_quota"),
    said(400, "Billing hard limit has been reached", "billing_hard_limit_reached"),
    said(429, "Your account is not active.", "billing_not_active"),
    said(403, "Your team has used all available credits."),
]
TOO_LARGE = [
    OPENAI_TOO_LONG,
    said(400, "Please reduce the length of the messages.", "context_length_exceeded"),
    said(400, "Input is too long for requested model."),
    said(
        400, "This model's maximum prompt length is 131072 but the request contains 200000 tokens."
    ),
    said(400, "Your input exceeds the context window of this model."),
    said(413, "Payload Too Large"),
    said(429, PER_MINUTE, "rate_limit_exceeded"),
]
PASSING = [
    said(429, "Rate limit reached for gpt-4o.", "rate_limit_exceeded"),
    said(500, "The server had an error; your credit balance is too low to say more."),
]
REFUSED = [
    said(400, "Invalid value for 'temperature'."),
    said(400, "No.", "content_policy_violation"),
]
VENDORS = {"openai": "OPENAI", "groq": "GROQ", "openrouter": "OPENROUTER", "deepseek": "DEEPSEEK"}


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("kind", "refusals"),
    [
        ("never", EMPTY_ACCOUNTS),
        ("too_long", TOO_LARGE),
        ("try_again", PASSING),
        ("refused", REFUSED),
    ],
)
async def test_what_a_vendor_means(
    ai: OpenAIStandIn,
    model: Models,
    heard: Heard,
    monkeypatch: pytest.MonkeyPatch,
    kind: FailureKind,
    refusals: list[Refuse],
    vendor: str,
) -> None:
    monkeypatch.setenv(f"{VENDORS[vendor]}_API_KEY", KEY)
    asked = model(f"{vendor}/test", api_base=f"{ai.url}/v1", attempts=1)
    ai.script(*refusals)

    failures = [failure_of(await asked.complete(HELLO, heard.on_text)) for _ in refusals]

    assert [failure.kind for failure in failures] == [kind] * len(refusals), failures


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (NO_CREDIT, "never"),
        (said(400, "You have reached your specified API usage limits."), "never"),
        (said(402, "Your billing."), "never"),
        (said(403, "Not yours."), "never"),
        (ANTHROPIC_TOO_LARGE, "too_long"),
        (ANTHROPIC_TOO_LONG, "too_long"),
        (
            said(400, "input length and `max_tokens` exceed context limit: 190 + 64 > 200"),
            "too_long",
        ),
        (said(400, "messages.3: no such thing"), "refused"),
    ],
)
async def test_what_anthropic_means(
    anthropic: AnthropicStandIn, model: Models, heard: Heard, refusal: Refuse, kind: FailureKind
) -> None:
    anthropic.script(refusal)
    claude = model("anthropic/claude-sonnet-4-5", api_base=anthropic.url, attempts=1)

    assert failure_of(await claude.complete(HELLO, heard.on_text)).kind == kind


async def test_an_empty_account_is_not_the_end_of_it(
    anthropic: AnthropicStandIn, ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    anthropic.script(NO_CREDIT)
    claude = model(
        "anthropic/claude-sonnet-4-5", api_base=anthropic.url, fallbacks=("openai/second",)
    )

    assert reply_of(await claude.complete(HELLO, heard.on_text)).text == "You said: hello"
