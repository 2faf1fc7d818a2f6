"""What whoever runs the service can do about a model that fails: which variable, and to what."""

from collections.abc import Mapping
from types import ModuleType
from typing import Literal

import httpx

from core.models.choice import DEFAULTS
from core.models.litellm_errors import chain, lacks_credentials

Cause = Literal["no key", "key", "access", "model", "credit", "name", "unreachable"]

KEYS: Mapping[str, str] = {name.partition("/")[0]: key for key, name in DEFAULTS.items()}
"""The variable of each vendor's key."""
BASES = frozenset({"openai"})
"""Vendors whose address is often set to another's that speaks as they do."""
_BY_STATUS: Mapping[int, Cause] = {
    401: "key",
    402: "credit",
    403: "access",
    404: "model",
    405: "model",
}
_CREDIT_CODES = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "exceeded_current_quota_error",
)
_CREDIT_WORDS = ("credit", "insufficient balance", "exceeded your current quota", "usage limits")
_BAD_KEY = ("invalid_api_key", "api_key_invalid", "api key not valid")
"""As OpenAI has it with a 401, and Gemini with a 400."""


def cause_of(litellm: ModuleType, error: BaseException) -> Cause | None:
    """None for what no setting can mend, or nobody knows."""
    root: BaseException = getattr(error, "original_exception", None) or error
    if lacks_credentials(litellm, root):
        return "no key"
    if any(isinstance(link, httpx.ConnectError) for link in chain(error)):
        return "unreachable"
    text = str(error).lower()
    if any(word in text for word in _BAD_KEY):
        return "key"
    if "model_not_found" in text:
        return "model"
    status: object = getattr(root, "status_code", None)
    if _is_about_credit(status, text):
        return "credit"
    return _BY_STATUS.get(status) if isinstance(status, int) else None


def remedy(cause: Cause, name: str, vendor: str, variable: str) -> str:
    """One sentence. ``variable`` is the one that holds the model's ``name``."""
    key = KEYS.get(vendor, f"the key of {vendor}")
    base = f", and {vendor.upper()}_API_BASE where it is set" if vendor in BASES else ""
    match cause:
        case "no key":
            return f"There is no key for {vendor}: set {key} and start me again."
        case "key":
            return f"{vendor} refuses the key in {key}: set a valid one and start me again."
        case "access":
            return (
                f"{vendor} does not let this key use {name}: check what {key} may do, or set "
                f"another {variable}."
            )
        case "model":
            return (
                f"{vendor} knows no model {name} where it is asked: check {variable}{base}, and "
                "start me again."
            )
        case "credit":
            return (
                f"The account behind {key} has no credit left or is at its limit: see to that at "
                f"{vendor}."
            )
        case "name":
            return (
                f"{variable} names no vendor that I know ({name}): write it like "
                "openai/gpt-5.4-mini, and start me again."
            )
        case "unreachable":
            return f"{vendor} cannot be reached: check the network{base}."


def _is_about_credit(status: object, text: str) -> bool:
    """A limit of a minute is none; nor is what stands under a status that says it is passing."""
    if any(code in text for code in _CREDIT_CODES):
        return True
    return status in (400, 402, 403, 429) and any(word in text for word in _CREDIT_WORDS)
