"""Which model answers when the operator names none; never reads the environment itself."""

from collections.abc import Mapping

import msgspec

DEMO = "demo"

DEFAULTS: Mapping[str, str] = {
    "OPENAI_API_KEY": "openai/gpt-5.4-mini",
    "ANTHROPIC_API_KEY": "anthropic/claude-sonnet-5",
    "GEMINI_API_KEY": "gemini/gemini-flash-latest",
    "MISTRAL_API_KEY": "mistral/mistral-medium-latest",
    "GROQ_API_KEY": "groq/openai/gpt-oss-120b",
    "OPENROUTER_API_KEY": "openrouter/openrouter/auto",
    "DEEPSEEK_API_KEY": "deepseek/deepseek-v4-flash",
    "XAI_API_KEY": "xai/grok-4.3",
    "MOONSHOT_API_KEY": "moonshot/kimi-latest",
}
"""A vendor's key, and one of its models of the middle sort that can call tools."""


class Choice(msgspec.Struct, frozen=True):
    """``why`` is one sentence for the log at start; ``remedy`` is what to set for a real model,
    where none was asked for."""

    name: str
    why: str
    remedy: str = ""


def choose(model: str | None, environment: Mapping[str, str]) -> Choice:
    wanted = (model or "").strip()
    if wanted.lower() == DEMO:
        return Choice(DEMO, "MODEL asks for the built-in demo model.")
    if wanted:
        return Choice(wanted, f"MODEL asks for {wanted}.")
    keys = [key for key in DEFAULTS if environment.get(key, "").strip()]
    if len(keys) == 1:
        name = DEFAULTS[keys[0]]
        return Choice(name, f"MODEL is not set; {keys[0]} is the only key here, so it is {name}.")
    if keys:
        return Choice(
            DEMO,
            f"MODEL is not set and there are several keys ({', '.join(keys)}), so it is the "
            "built-in demo model; set MODEL to choose.",
            "Set MODEL to one of your vendors' models.",
        )
    return Choice(
        DEMO,
        "MODEL is not set and there is no key of a vendor, so it is the built-in demo model.",
        f"Set the key of a vendor, such as {next(iter(DEFAULTS))}.",
    )
