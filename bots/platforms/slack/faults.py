"""The one place where Slack's errors become ours; past it no vendor's error exists."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Literal, cast

import aiohttp
from slack_sdk.errors import SlackApiError

from core.errors import PermanentError, StillhereError, TransientError, UnknownOutcomeError

Fault = Literal["refused", "slow down", "later", "rejected", "unsent", "unknown"]
"""``refused`` is the token, ``rejected`` one call; ``unknown`` may have been carried out."""

REFUSED_SECONDS = 60.0
_REFUSED = frozenset(
    {"account_inactive", "invalid_auth", "not_allowed_token_type", "not_authed", "token_expired"}
    | {"token_revoked", "user_removed_from_team"}
)
_SLOW_DOWN = frozenset({"message_limit_exceeded", "rate_limited", "ratelimited"})
_LATER = frozenset({"request_timeout", "team_added_to_org"})
# Slack says of these that part of the call may have been carried out.
_UNKNOWN = frozenset({"fatal_error", "internal_error", "service_unavailable"})
_UNSENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)


def fault_of(error: Exception) -> Fault:
    """By class, status and code, never by text. An answer that is not Slack's own came from
    something in between, and is not its word."""
    if isinstance(error, _UNSENT):
        return "unsent"
    if _status(error) == HTTPStatus.TOO_MANY_REQUESTS:
        return "slow down"
    code = code_of(error)
    if not code or code in _UNKNOWN:
        return "unknown"
    if code in _REFUSED:
        return "refused"
    if code in _SLOW_DOWN:
        return "slow down"
    return "later" if code in _LATER else "rejected"


def code_of(error: Exception) -> str:
    """Slack's own word for it, such as ``channel_not_found``; empty where Slack said none."""
    if not isinstance(error, SlackApiError) or _status(error) >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ""
    data = _data(error)
    return str(data.get("error", "")) if data.get("ok") is False else ""


def translated(error: Exception, redact: Callable[[str], str]) -> StillhereError:
    if isinstance(error, StillhereError):
        return error
    text = described(error, redact)
    match fault_of(error):
        case "refused":
            return TransientError(text, REFUSED_SECONDS)
        case "slow down":
            return TransientError(text, seconds_of(error))
        case "later" | "unsent":
            return TransientError(text)
        case "rejected":
            return PermanentError(text)
        case "unknown":
            return UnknownOutcomeError(text)


def described(error: Exception, redact: Callable[[str], str]) -> str:
    code = code_of(error)
    if not code:
        return redact(f"{type(error).__name__}: {error}")
    needed = _data(error).get("needed")
    return f"Slack says {code}" + (f", the app needs the scope {needed}" if needed else "")


def seconds_of(error: Exception) -> float | None:
    """How long Slack wants to be left alone."""
    headers: Any = getattr(_answer(error), "headers", None) or {}
    try:
        return float(headers.get("Retry-After"))
    except (TypeError, ValueError):
        return None


def _status(error: Exception) -> int:
    """0 where there was no answer."""
    answer = _answer(error)
    return int(getattr(answer, "status_code", 0) or getattr(answer, "status", 0) or 0)


def _answer(error: Exception) -> Any:  # noqa: ANN401
    """The SDK gives one of two classes, and what comes past the SDK is itself the answer."""
    return getattr(error, "response", None) or error


def _data(error: Exception) -> dict[str, Any]:
    """The SDK gives a str for what is no JSON."""
    data: Any = getattr(getattr(error, "response", None), "data", None)
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}
