"""Whatever a model call raises becomes a ModelFailure here; it judges by words only where a vendor
gives no more, and never retries.

What is wrong with an account, a key or a limit is «never»: another model may answer. «refused» is
the request's own fault, and its context pays for it, so nothing else may be called that.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import cast

from core.domain.messages import FailureKind, ModelFailure

TRANSIENT = frozenset({408, 409, 425, 429})
HOPELESS = frozenset({401, 402, 403, 404, 405})
BY_CODE: Mapping[str, FailureKind] = {
    "context_length_exceeded": "too_long",
    "request_too_large": "too_long",
    "content_filter": "refused",
    "content_policy_violation": "refused",
    "insufficient_quota": "never",
    "billing_hard_limit_reached": "never",
    "billing_not_active": "never",
    "billing_error": "never",
    "exceeded_current_quota_error": "never",
    "invalid_api_key": "never",
    "model_not_found": "never",
}
"""Codes and types of OpenAI, which its imitators send too, of Anthropic and of Moonshot."""
BY_WORDS: tuple[tuple[str, FailureKind], ...] = (
    ("credit balance is too low", "never"),
    ("reached your specified api usage limits", "never"),
    ("prompt is too long", "too_long"),
    ("input is too long", "too_long"),
    ("maximum context length", "too_long"),
    ("maximum prompt length", "too_long"),
    ("exceeds the context window", "too_long"),
    ("exceed context limit", "too_long"),
    ("too many input tokens", "too_long"),
    ("request too large for", "too_long"),
)
"""What vendors say under a code or type that says nothing, in this order: Anthropic's empty account
and monthly limit, a window that is full, and more tokens at once than a minute's limit has."""
_CODE_IN_TEXT = re.compile(r'"(?:code|type|status)": ?"(\w+)"')
"""litellm keeps of most vendors' answers the text alone."""
WORDY = frozenset({400, 413, 422, 429})
"""Statuses under which vendors say what they mean by words."""
LONGEST_DETAIL = 500


def failure_of(
    litellm: ModuleType, error: BaseException, redact: Callable[[str], str]
) -> ModelFailure:
    """``detail`` is one line with the error's type; no stored secret survives ``redact``."""
    root: BaseException = getattr(error, "original_exception", None) or error
    return ModelFailure(
        kind=_kind(litellm, root),
        detail=_detail(error, redact),
        retry_after=retry_after(getattr(error, "litellm_response_headers", None) or {}),
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; a date is measured against the ``Date`` of the same answer."""
    lower = {name.lower(): value for name, value in headers.items()}
    milliseconds = _number(lower.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    wanted = lower.get("retry-after")
    seconds = _number(wanted)
    return seconds if seconds is not None else _until(wanted, lower.get("date"))


def _kind(litellm: ModuleType, error: BaseException) -> FailureKind:
    if isinstance(error, litellm.ContextWindowExceededError):
        return "too_long"
    if isinstance(error, litellm.ContentPolicyViolationError):
        return "refused"
    if isinstance(error, litellm.UnsupportedParamsError) or lacks_credentials(litellm, error):
        return "never"
    status: object = getattr(error, "status_code", None)
    return _by_code(error) or _by_words(status, str(error)) or _by_status(status)


def _by_words(status: object, text: str) -> FailureKind | None:
    if status not in WORDY:
        return None
    lower = text.lower()
    return next((kind for words, kind in BY_WORDS if words in lower), None)


def _by_status(status: object) -> FailureKind:
    """Without a status it was the connection, a time limit, or an answer that is no answer."""
    if not isinstance(status, int) or status in TRANSIENT or not 400 <= status < 500:
        return "try_again"
    if status == 413:
        return "too_long"
    return "never" if status in HOPELESS else "refused"


def _by_code(error: BaseException) -> FailureKind | None:
    body: object = getattr(error, "body", None)
    fields = cast("dict[str, object]", body) if isinstance(body, dict) else dict[str, object]()
    told = (getattr(error, "code", None), fields.get("code"), fields.get("type"))
    codes: tuple[object, ...] = (*told, *_CODE_IN_TEXT.findall(str(error)))
    for code in codes:
        if isinstance(code, str) and code in BY_CODE:
            return BY_CODE[code]
    return None


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it came of."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def lacks_credentials(litellm: ModuleType, error: BaseException) -> bool:
    """OpenAI's client refuses to be made without a key by the bare root of its errors; litellm
    calls that a 500."""
    return any(type(link) is litellm.openai.OpenAIError for link in chain(error))


def _detail(error: BaseException, redact: Callable[[str], str]) -> str:
    status = getattr(error, "status_code", None)
    code = f" {status}" if isinstance(status, int) else ""
    words = " ".join(redact(str(error)).split())
    return f"{type(error).__name__}{code}: {words}"[:LONGEST_DETAIL]


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _until(wanted: str | None, date: str | None) -> float | None:
    try:
        wait = parsedate_to_datetime(wanted or "") - parsedate_to_datetime(date or "")
    except (TypeError, ValueError):
        return None
    return max(wait.total_seconds(), 0.0)
